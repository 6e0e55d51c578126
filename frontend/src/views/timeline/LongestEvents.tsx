/** The longest gaps, GPU activities and ops of the iteration, as tables: the drawing's extremes for those who do not see it. */
import { useMemo } from "preact/hooks";
import type { LongEvent, TimelinePage } from "../../api/types";
import { Card } from "../../components/Card";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { DEFINITIONS } from "../../format/definitions";
import { assign } from "../../state/param";
import { eventParam } from "./params";

const share: Column<LongEvent> = {
  id: "share",
  header: "%",
  definition: "Share of the iteration.",
  value: (row) => row.percent,
  unit: "percent",
  width: "70px",
};
const time: Column<LongEvent> = {
  id: "duration",
  header: "Duration",
  definition: "From its start to its end.",
  value: (row) => row.spot.duration_ns,
  unit: "ns",
  width: "92px",
};
const begins = (stepNs: number): Column<LongEvent> => ({
  id: "start",
  header: "Begins",
  definition: DEFINITIONS.eventStart,
  value: (row) => row.spot.start_ns - stepNs,
  unit: "ns",
  width: "92px",
});
const name = (header: string, definition: string, width: string): Column<LongEvent> => ({
  id: "name",
  header,
  definition,
  value: (row) => row.spot.label,
  width,
});
const op = (header: string, definition: string): Column<LongEvent> => ({
  id: "op",
  header,
  definition,
  value: (row) => row.op || null,
  missing: "–",
  width: "190px",
});

/** The columns of the three tables; `stepNs` is where the step begins in the window. */
function columnsOf(stepNs: number) {
  const rest = [time, share, begins(stepNs)];
  return {
    gaps: [
      name("Why idle", "The cause of most of the gap, as in the account of a step.", "230px"),
      ...rest,
      op("Ended by", "The op that launched what ran next."),
    ],
    gpu: [name("On the GPU", "Kernel, copy or set.", "230px"), ...rest, op("Op", "The outermost op that launched it.")],
    ops: [
      op("Op", "The outermost op; on the CPU, with all that it called."),
      ...rest,
      name("Call", "The call's own name.", "200px"),
    ],
  };
}

export function LongestEvents({ data }: { data: TimelinePage }) {
  const begin = data.iteration.start_ns;
  const columns = useMemo(() => columnsOf(begin), [begin]);
  const tables = [
    ["Longest idle gaps", data.longest_gaps, columns.gaps, "timeline-gaps"],
    ["Longest on the GPU", data.longest_gpu, columns.gpu, "timeline-gpu"],
    ["Longest ops on the CPU", data.longest_ops, columns.ops, "timeline-ops"],
  ] as const;
  return (
    <div class="timeline-longest">
      {tables.map(
        ([title, rows, own, testId]) =>
          rows.length > 0 && (
            <Card key={testId} title={title}>
              <DataTable
                name={`${title.toLowerCase()} ${data.ref.run}`}
                testId={testId}
                plain
                columns={own}
                rows={rows}
                rowId={(row) => row.spot.id}
                selected={eventParam.value}
                onSelect={(row) => assign(eventParam.to(row.spot.id === eventParam.value ? null : row.spot.id))}
              />
            </Card>
          ),
      )}
    </div>
  );
}
