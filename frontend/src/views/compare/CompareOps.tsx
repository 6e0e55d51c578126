/** The ops of both runs, matched, with what each gained or lost. */
import { useMemo } from "preact/hooks";
import type { CompareOp, ComparePage } from "../../api/types";
import { Card } from "../../components/Card";
import { OpName } from "../../components/OpName";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";
import { exactNs, formatNsDifference } from "../../format/duration";

/** A time of one side; an op that the side does not have is told apart from an unknown time. */
function SideTime({ id, ns }: { id: string | null; ns: number | null }) {
  return <Value value={ns} unit="ns" missing={id === null ? "not in run" : "unknown"} />;
}

/** The verdict of one side, nothing where the side has no such op. */
function SideVerdict({ id, value }: { id: string | null; value: CompareOp["a_using_tc"] }) {
  return id === null ? <span class="missing">–</span> : <Verdict value={value} />;
}

/** Below one percent of either side a difference is no gain and no loss. */
function changeClass(row: CompareOp): string {
  const difference = row.difference_ns ?? 0;
  if (Math.abs(difference) <= 0.01 * Math.max(row.a_ns ?? 0, row.b_ns ?? 0)) return "";
  return difference > 0 ? "change-worse" : "change-better";
}

function columnsFor(basis: ComparePage["basis"]): Column<CompareOp>[] {
  const time = basis === "gpu" ? "GPU time" : "CPU time";
  const each = `${time} of the op per iteration`;
  return [
    { id: "name", header: "Op", definition: DEFINITIONS.opName, value: (row) => row.name, cell: (row) => <OpName name={row.name} />, width: "280px" },
    { id: "direction", header: "Direction", definition: DEFINITIONS.direction, value: (row) => row.direction || null, missing: "–", filter: "choice", width: "96px" },
    { id: "a", header: "Base", definition: `${each}, in the base.`, value: (row) => row.a_ns, unit: "ns", cell: (row) => <SideTime id={row.a_id} ns={row.a_ns} />, width: "108px" },
    { id: "b", header: "Candidate", definition: `${each}, in the candidate.`, value: (row) => row.b_ns, unit: "ns", cell: (row) => <SideTime id={row.b_id} ns={row.b_ns} />, width: "108px" },
    {
      id: "difference",
      header: "Difference",
      definition: DEFINITIONS.difference,
      value: (row) => row.difference_ns,
      unit: "ns",
      cell: (row) =>
        row.difference_ns === null ? (
          <span class="missing">–</span>
        ) : (
          <span class={`num ${changeClass(row)}`} title={exactNs(row.difference_ns)}>
            {formatNsDifference(row.difference_ns)}
          </span>
        ),
      width: "104px",
    },
    { id: "speedup", header: "Speedup", definition: DEFINITIONS.speedup, value: (row) => row.speedup, unit: "ratio", missing: "–", width: "86px" },
    { id: "atc", header: "Base TC", definition: "Whether the op uses Tensor Cores in the base.", value: (row) => row.a_using_tc, filter: "choice", cell: (row) => <SideVerdict id={row.a_id} value={row.a_using_tc} />, width: "100px" },
    { id: "btc", header: "Cand. TC", definition: "Whether the op uses Tensor Cores in the candidate.", value: (row) => row.b_using_tc, filter: "choice", cell: (row) => <SideVerdict id={row.b_id} value={row.b_using_tc} />, width: "100px" },
    { id: "aprecision", header: "Base precision", definition: DEFINITIONS.precision, value: (row) => row.a_precision || null, missing: "–", filter: "choice", width: "128px" },
    { id: "bprecision", header: "Cand. precision", definition: DEFINITIONS.precision, value: (row) => row.b_precision || null, missing: "–", filter: "choice", width: "132px" },
    { id: "akernels", header: "Base kernels", definition: "Kernels per iteration in the base.", value: (row) => row.a_kernels, unit: "count", missing: "–", width: "112px" },
    { id: "bkernels", header: "Cand. kernels", definition: "Kernels per iteration in the candidate.", value: (row) => row.b_kernels, unit: "count", missing: "–", width: "118px" },
    { id: "type", header: "Op type", definition: DEFINITIONS.opType, value: (row) => row.op_type, width: "190px" },
    { id: "module", header: "Module", definition: DEFINITIONS.module, value: (row) => row.module || null, missing: "–", width: "180px" },
  ];
}

export function CompareOps({ data }: { data: ComparePage }) {
  const columns = useMemo(() => columnsFor(data.basis), [data.basis]);
  return (
    <Card
      title="Ops"
      actions={
        <span class="muted small">
          <Term of="matched">matched</Term>: <Value value={data.matched_percent} unit="percent" /> of the time
        </span>
      }
    >
      <DataTable
        name={`compare ${data.a.ref.run} ${data.b.ref.run}`}
        testId="compare-table"
        columns={columns}
        rows={data.ops}
        rowId={(row) => `${row.a_id ?? ""} ${row.b_id ?? ""}`}
        totalRows={data.total_rows}
      />
    </Card>
  );
}
