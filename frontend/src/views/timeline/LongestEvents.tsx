/** The longest gaps, GPU activities and ops of the iteration, as tables: the drawing's extremes for those who do not see it. */
import type { LongEvent, TimelinePage } from "../../api/types";
import { Card } from "../../components/Card";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
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
const begins: Column<LongEvent> = {
  id: "start",
  header: "Begins",
  definition: "Time since the window's start.",
  value: (row) => row.spot.start_ns,
  unit: "ns",
  width: "92px",
};
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

const GAPS = [
  name("Why idle", "What the GPU waited for, and what the CPU did for most of it.", "230px"),
  time,
  share,
  begins,
  op("Ended by", "The op that launched what ran next."),
];
const GPU = [
  name("On the GPU", "Kernel, copy or set.", "230px"),
  time,
  share,
  begins,
  op("Op", "The outermost op that launched it."),
];
const OPS = [
  op("Op", "The outermost op; on the CPU, with all that it called."),
  time,
  share,
  begins,
  name("Call", "The call's own name.", "200px"),
];

export function LongestEvents({ data }: { data: TimelinePage }) {
  const tables = [
    ["Longest idle gaps", data.longest_gaps, GAPS, "timeline-gaps"],
    ["Longest on the GPU", data.longest_gpu, GPU, "timeline-gpu"],
    ["Longest ops on the CPU", data.longest_ops, OPS, "timeline-ops"],
  ] as const;
  return (
    <div class="timeline-longest">
      {tables.map(
        ([title, rows, columns, testId]) =>
          rows.length > 0 && (
            <Card key={testId} title={title}>
              <DataTable
                name={`${title.toLowerCase()} ${data.ref.run}`}
                testId={testId}
                plain
                columns={columns}
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
