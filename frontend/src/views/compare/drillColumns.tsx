/** The columns of the modules and ops below a bar: times in the chosen bucket, or of all the op launched. */
import * as columns from "../../api/columns";
import type { CompareBucket, CompareModule, CompareOp, ComparePage } from "../../api/types";
import { CutName } from "../../components/CutName";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { DEFINITIONS } from "../../format/definitions";
import { exactNs, formatNs, formatNsDifference } from "../../format/duration";
import { formatInterval } from "../../format/number";
import { moduleLabel, timesIn } from "./drill";

interface Row {
  a_buckets: Record<string, number>;
  b_buckets: Record<string, number>;
  a_ns: number | null;
  b_ns: number | null;
  difference_ns: number | null;
  low_ns: number | null;
  high_ns: number | null;
  noise: boolean | null;
  speedup: number | null;
  change_ns: number;
  change_percent: number | null;
  a_precision: string;
  b_precision: string;
  a_kernels: number | null;
  b_kernels: number | null;
  a_roof_percent: number | null;
  b_roof_percent: number | null;
}

/** Below one percent of either side a difference is no gain and no loss; nor is noise. */
export function changeClass(row: {
  a_ns: number | null;
  b_ns: number | null;
  difference_ns: number | null;
  noise: boolean | null;
}): string {
  const difference = row.difference_ns ?? 0;
  if (row.noise || Math.abs(difference) <= 0.01 * Math.max(row.a_ns ?? 0, row.b_ns ?? 0)) return "";
  return difference > 0 ? "change-worse" : "change-better";
}

/** A difference with its interval as a title; noise is marked. */
export function Difference({ row }: { row: Row }) {
  if (row.difference_ns === null) return <span class="missing">–</span>;
  const interval =
    row.low_ns === null || row.high_ns === null
      ? ""
      : `; 95 % interval ${formatInterval(row.low_ns, row.high_ns, formatNs)}`;
  return (
    <span class={`num ${changeClass(row)}`} title={exactNs(row.difference_ns) + interval}>
      {row.noise && row.difference_ns !== 0 && <span aria-label="noise">≈ </span>}
      {formatNsDifference(row.difference_ns)}
    </span>
  );
}

const arrow = (before: string | number | null, after: string | number | null): string | null =>
  before === null && after === null ? null : `${before ?? "–"} → ${after ?? "–"}`;

const whole = (percent: number | null): string | null => (percent === null ? null : `${percent.toFixed(0)} %`);

/** What every row says about before and after, but for its name and times. */
function beforeAndAfter<R extends Row>(): Column<R>[] {
  return [
    {
      id: "share",
      header: "Of change",
      definition: DEFINITIONS.changeShare,
      value: (row) => row.change_percent,
      unit: "percent",
      missing: "–",
      width: "98px",
    },
    {
      id: "precision",
      header: "Precision",
      definition: DEFINITIONS.precision,
      value: (row) => arrow(row.a_precision || null, row.b_precision || null),
      missing: "–",
      filter: "choice",
      width: "128px",
    },
    {
      id: "kernels",
      header: "Kernels",
      definition: "Kernels, copies and sets per iteration, before and after.",
      value: (row) => arrow(row.a_kernels, row.b_kernels),
      missing: "–",
      width: "104px",
    },
    {
      id: "roof",
      header: "Of roof",
      definition: DEFINITIONS.ofRoof,
      value: (row) => arrow(whole(row.a_roof_percent), whole(row.b_roof_percent)),
      missing: "–",
      width: "122px",
    },
  ];
}

function times<R extends Row>(basis: ComparePage["basis"], bucket: CompareBucket | null): Column<R>[] {
  const each = bucket
    ? `Time in "${bucket.label}", by the clock, per iteration`
    : `${basis === "gpu" ? "GPU" : "CPU"} time per iteration`;
  const of = (row: R) => (bucket ? timesIn(row, bucket.key) : { a: row.a_ns, b: row.b_ns });
  const side = (id: "a" | "b", header: string): Column<R> => ({
    id,
    header,
    definition: `${each}, in the ${header.toLowerCase()}.`,
    value: (row) => of(row)[id],
    unit: "ns",
    missing: "not in run",
    width: "104px",
  });
  const change = (row: R): number => (bucket ? (of(row).b ?? 0) - (of(row).a ?? 0) : row.difference_ns!);
  return [
    side("a", "Base"),
    side("b", "Candidate"),
    {
      id: "difference",
      header: "Change",
      definition: DEFINITIONS.difference,
      value: (row) => (bucket ? change(row) : row.difference_ns),
      unit: "ns",
      cell: (row) =>
        bucket ? (
          <span
            class={`num ${change(row) > 0 ? "change-worse" : change(row) < 0 ? "change-better" : ""}`}
            title={exactNs(change(row))}
          >
            {formatNsDifference(change(row))}
          </span>
        ) : (
          <Difference row={row} />
        ),
      width: "108px",
    },
    ...(bucket
      ? []
      : [
          {
            id: "speedup",
            header: "Speedup",
            definition: DEFINITIONS.speedup,
            value: (row: R) => row.speedup,
            unit: "ratio" as const,
            missing: "–",
            width: "88px",
          },
        ]),
  ];
}

export function moduleColumns(data: ComparePage, bucket: CompareBucket | null): Column<CompareModule>[] {
  return [
    {
      id: "name",
      header: "Module",
      definition: DEFINITIONS.module,
      value: (row) => moduleLabel(row.module),
      cell: (row) => (
        <>
          <CutName name={moduleLabel(row.module)} /> {row.status && <span class="compare-mark">{row.status}</span>}
        </>
      ),
      width: "260px",
    },
    ...times<CompareModule>(data.basis, bucket),
    ...beforeAndAfter<CompareModule>(),
  ];
}

export function opColumns(data: ComparePage, bucket: CompareBucket | null): Column<CompareOp>[] {
  const [name, role, ...rest] = tableColumns(columns.CompareOp, {
    name: {
      value: (row) => row.op_type,
      cell: (row) => <CutName name={row.dims ? `${row.op_type} ${row.dims}` : row.op_type} />,
    },
    reason: { value: (row) => matchText(row, data) },
  });
  const match = rest.filter(({ id }) => id === "reason");
  return [name!, role!, ...times<CompareOp>(data.basis, bucket), ...beforeAndAfter<CompareOp>(), ...match];
}

/** How the pair was found, or why there is none. */
export function matchText(row: CompareOp, data: ComparePage): string {
  if (row.reason) return data.reason_texts[row.reason] ?? row.reason;
  if (row.how === "sequence")
    return row.module === row.b_module ? "by order and dims" : `by order and dims: ${row.b_module || "no module"}`;
  return row.how === "resized" ? "by module, other dims" : "by module";
}
