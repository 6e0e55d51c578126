/** The columns of the modules and ops below a bar: times in the chosen bucket, or of all the op launched. */
import type { CompareBucket, CompareModule, CompareOp, ComparePage } from "../../api/types";
import { CutName } from "../../components/CutName";
import type { Column } from "../../components/table/columns";
import { Value } from "../../components/Value";
import { DEFINITIONS } from "../../format/definitions";
import { exactNs, formatNs, formatNsDifference } from "../../format/duration";
import { formatInterval } from "../../format/number";
import { passColumn } from "../passColumn";
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
export function beforeAndAfter<R extends Row>(): Column<R>[] {
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
  if (bucket !== null) {
    const each = `Time in "${bucket.label}", by the clock, per iteration`;
    const change = (row: R): number => timesIn(row, bucket.key).b - timesIn(row, bucket.key).a;
    return [
      {
        id: "a",
        header: "Base",
        definition: `${each}, in the base.`,
        value: (row) => timesIn(row, bucket.key).a,
        unit: "ns",
        width: "96px",
      },
      {
        id: "b",
        header: "Candidate",
        definition: `${each}, in the candidate.`,
        value: (row) => timesIn(row, bucket.key).b,
        unit: "ns",
        width: "104px",
      },
      {
        id: "difference",
        header: "Change",
        definition: DEFINITIONS.difference,
        value: change,
        unit: "ns",
        cell: (row) => (
          <span
            class={`num ${change(row) > 0 ? "change-worse" : change(row) < 0 ? "change-better" : ""}`}
            title={exactNs(change(row))}
          >
            {formatNsDifference(change(row))}
          </span>
        ),
        width: "100px",
      },
    ];
  }
  const each = `${basis === "gpu" ? "GPU" : "CPU"} time per iteration`;
  return [
    {
      id: "a",
      header: "Base",
      definition: `${each}, in the base.`,
      value: (row) => row.a_ns,
      unit: "ns",
      cell: (row) => <Value value={row.a_ns} unit="ns" missing="not in run" />,
      width: "96px",
    },
    {
      id: "b",
      header: "Candidate",
      definition: `${each}, in the candidate.`,
      value: (row) => row.b_ns,
      unit: "ns",
      cell: (row) => <Value value={row.b_ns} unit="ns" missing="not in run" />,
      width: "104px",
    },
    {
      id: "difference",
      header: "Change",
      definition: DEFINITIONS.difference,
      value: (row) => row.difference_ns,
      unit: "ns",
      cell: (row) => <Difference row={row} />,
      width: "108px",
    },
    {
      id: "speedup",
      header: "Speedup",
      definition: DEFINITIONS.speedup,
      value: (row) => row.speedup,
      unit: "ratio",
      missing: "–",
      width: "88px",
    },
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
  return [
    {
      id: "name",
      header: "Op",
      definition: DEFINITIONS.opName,
      value: (row) => row.op_type,
      cell: (row) => <CutName name={row.dims ? `${row.op_type} ${row.dims}` : row.op_type} />,
      width: "220px",
    },
    passColumn((row) => row.role, "96px"),
    ...times<CompareOp>(data.basis, bucket),
    ...beforeAndAfter<CompareOp>(),
    {
      id: "reason",
      header: "Match",
      definition: "Why the op is in one run only, or how its partner was found.",
      value: (row) => matchText(row, data),
      filter: "choice",
      width: "190px",
    },
  ];
}

/** How the pair was found, or why there is none. */
export function matchText(row: CompareOp, data: ComparePage): string {
  if (row.reason) return data.reason_texts[row.reason] ?? row.reason;
  if (row.how === "sequence")
    return row.module === row.b_module ? "by order and dims" : `by order and dims: ${row.b_module || "no module"}`;
  return row.how === "resized" ? "by module, other dims" : "by module";
}
