/** The downloads of the drawing: the picture, and the events in view as CSV and JSON. */
import type { TimelineSpot } from "../../api/types";
import { toCsv, toJson, toTsv } from "../../components/export/formats";
import { DownloadMenu } from "../../components/export/DownloadMenu";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { KIND_WORDS } from "./HoverCard";
import { firstAbove, type Timeline } from "./model";
import { pictureOf } from "./picture";
import type { Stage } from "./stage";

const columnsOf = (timeline: Timeline): Column<TimelineSpot>[] => [
  { id: "id", header: "Id", definition: "Names the event in links.", value: (row) => row.id, width: "" },
  {
    id: "row",
    header: "Row",
    definition: "Thread, stream or what else it is drawn on.",
    value: (row) => timeline.tracks[row.track]!.label,
    width: "",
  },
  {
    id: "level",
    header: "Level",
    definition: "How deep it is nested.",
    value: (row) => row.level,
    unit: "count",
    width: "",
  },
  { id: "name", header: "Name", definition: "As it is drawn.", value: (row) => row.label, width: "" },
  { id: "kind", header: "Kind", definition: "What it is.", value: (row) => KIND_WORDS[row.kind], width: "" },
  {
    id: "start",
    header: "Begins",
    definition: DEFINITIONS.eventStart,
    value: (row) => timeline.sinceStep(row.start_ns),
    unit: "ns",
    width: "",
  },
  {
    id: "duration",
    header: "Duration",
    definition: "From its start to its end.",
    value: (row) => row.duration_ns,
    unit: "ns",
    width: "",
  },
];

export function TimelineFiles({ timeline, stage }: { timeline: Timeline; stage: Stage }) {
  const { ref, iteration } = timeline.page;
  const rows = (): TimelineSpot[] => inView(timeline, stage);
  return (
    <DownloadMenu
      downloads={() => [
        {
          name: "Events in view",
          file: `timeline ${ref.run} iteration ${iteration.number}`,
          csv: () => toCsv(columnsOf(timeline), rows()),
          tsv: () => toTsv(columnsOf(timeline), rows()),
          json: () => toJson(columnsOf(timeline), rows()),
          png: () => pictureOf(stage.scene(), ref.run),
        },
      ]}
    />
  );
}

/** The loaded events that touch the visible span, by row and time. */
export function inView(timeline: Timeline, { span }: Pick<Stage, "span">): TimelineSpot[] {
  return timeline.tracks.flatMap((track, index) =>
    Array.from({ length: track.levels }, (_, level) => timeline.lane(index, level)).flatMap((lane) =>
      lane.blocks
        .flatMap((block) => {
          const found: TimelineSpot[] = [];
          for (
            let at = firstAbove(block.reach, span.from);
            at < block.start.length && block.start[at]! < span.to;
            at++
          ) {
            if (block.stop[at]! > span.from) found.push(timeline.spotOf({ lane, block, index: at }));
          }
          return found;
        })
        .sort((a, b) => a.start_ns - b.start_ns),
    ),
  );
}
