/** The points of all lines as a table; a point opens its run. */
import { useMemo } from "preact/hooks";
import type { SweepPage } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Value } from "../../components/Value";
import { goTo } from "../../state/navigate";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { NO_PROFILE } from "../../state/profile";
import { sweepTable } from "./params";

interface Point {
  line: string;
  position: number;
  place: string;
  run: string;
  value: number;
  estimated: boolean;
}

/** The points of all lines and their columns: of the table, and of the chart's files. */
export function usePoints(data: SweepPage): { rows: Point[]; columns: Column<Point>[] } {
  const rows = useMemo<Point[]>(
    () =>
      data.curves.flatMap((curve) =>
        curve.marks.map((mark) => ({
          line: curve.label,
          position: mark.position,
          place: data.positions[mark.position] ?? "",
          run: mark.ref.run,
          value: mark.value,
          estimated: mark.estimated,
        })),
      ),
    [data],
  );
  const columns = useMemo<Column<Point>[]>(
    () => [
      { id: "run", header: "Run", definition: "The run behind the point.", value: (row) => row.run, width: "260px" },
      {
        id: "line",
        header: "Line",
        definition: "The facts in which the lines differ.",
        value: (row) => row.line,
        filter: "choice",
        width: "280px",
      },
      {
        id: "place",
        header: data.over_label.charAt(0).toUpperCase() + data.over_label.slice(1),
        definition: "The fact over which the lines go.",
        value: (row) => row.place,
        filter: "choice",
        width: "180px",
      },
      {
        id: "value",
        header: "Value",
        definition: `${data.measure_label}.`,
        value: (row) => row.value,
        unit: data.unit,
        width: "130px",
        cell: (row) => (row.estimated ? <Estimated value={row.value} unit={data.unit} /> : undefined),
      },
    ],
    [data.over_label, data.measure_label, data.unit],
  );
  return { rows, columns };
}

/** A value that hangs on an estimated step. */
function Estimated({ value, unit }: { value: number; unit: SweepPage["unit"] }) {
  return (
    <span title="Hangs on a step that is estimated">
      ~<Value value={value} unit={unit} />
    </span>
  );
}

export function SweepPoints({ data }: { data: SweepPage }) {
  const { rows, columns } = usePoints(data);
  return (
    <DataTable
      name={`${data.measure_label} over ${data.over_label}`}
      testId="sweep-table"
      options={sweepTable}
      columns={columns}
      rows={rows}
      rowId={(row) => `${row.run}`}
      onSelect={(row) => goTo("overview", profileParam.to({ ...NO_PROFILE, run: row.run }), rangeParam.to(null))}
    />
  );
}
