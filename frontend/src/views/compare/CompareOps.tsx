/** The ops of both runs, matched, with what each gained or lost. */
import { useMemo } from "preact/hooks";
import type { CompareOp, ComparePage } from "../../api/types";
import { Card } from "../../components/Card";
import { CutName } from "../../components/CutName";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";
import { passColumn } from "../passColumn";
import { drill } from "./drillInto";
import { keyOfModule } from "./drill";
import { Difference, matchText } from "./drillColumns";
import { pairModuleParam, pairParam, compareTable } from "./params";

/** A time of one side; an op that the side does not have is distinguished from an unknown time. */
function SideTime({ id, ns }: { id: string | null; ns: number | null }) {
  return <Value value={ns} unit="ns" missing={id === null ? "not in run" : "unknown"} />;
}

/** The verdict of one side, nothing where the side has no such op. */
function SideVerdict({ id, value }: { id: string | null; value: CompareOp["a_using_tc"] }) {
  return id === null ? <span class="missing">–</span> : <Verdict value={value} />;
}

function columnsFor(data: ComparePage): Column<CompareOp>[] {
  const time = data.basis === "gpu" ? "GPU time" : "CPU time";
  const each = `${time} of the op per iteration`;
  return [
    {
      id: "name",
      header: "Op",
      definition: DEFINITIONS.opName,
      value: (row) => row.name,
      cell: (row) => <CutName name={row.dims ? `${row.name} ${row.dims}` : row.name} />,
      width: "280px",
    },
    passColumn((row) => row.role, "96px"),
    {
      id: "a",
      header: "Base",
      definition: `${each}, in the base.`,
      value: (row) => row.a_ns,
      unit: "ns",
      cell: (row) => <SideTime id={row.a_id} ns={row.a_ns} />,
      width: "108px",
    },
    {
      id: "b",
      header: "Candidate",
      definition: `${each}, in the candidate.`,
      value: (row) => row.b_ns,
      unit: "ns",
      cell: (row) => <SideTime id={row.b_id} ns={row.b_ns} />,
      width: "108px",
    },
    {
      id: "difference",
      header: "Difference",
      definition: DEFINITIONS.difference,
      value: (row) => row.difference_ns,
      unit: "ns",
      cell: (row) => <Difference row={row} />,
      width: "104px",
    },
    {
      id: "speedup",
      header: "Speedup",
      definition: DEFINITIONS.speedup,
      value: (row) => row.speedup,
      unit: "ratio",
      missing: "–",
      width: "86px",
    },
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
      id: "atc",
      header: "Base TC",
      definition: "Whether the op uses Tensor Cores in the base.",
      value: (row) => row.a_using_tc,
      filter: "choice",
      cell: (row) => <SideVerdict id={row.a_id} value={row.a_using_tc} />,
      width: "100px",
    },
    {
      id: "btc",
      header: "Cand. TC",
      definition: "Whether the op uses Tensor Cores in the candidate.",
      value: (row) => row.b_using_tc,
      filter: "choice",
      cell: (row) => <SideVerdict id={row.b_id} value={row.b_using_tc} />,
      width: "100px",
    },
    {
      id: "aprecision",
      header: "Base precision",
      definition: DEFINITIONS.precision,
      value: (row) => row.a_precision || null,
      missing: "–",
      filter: "choice",
      width: "128px",
    },
    {
      id: "bprecision",
      header: "Cand. precision",
      definition: DEFINITIONS.precision,
      value: (row) => row.b_precision || null,
      missing: "–",
      filter: "choice",
      width: "132px",
    },
    {
      id: "akernels",
      header: "Base kernels",
      definition: "Kernels per iteration in the base.",
      value: (row) => row.a_kernels,
      unit: "count",
      missing: "–",
      width: "112px",
    },
    {
      id: "bkernels",
      header: "Cand. kernels",
      definition: "Kernels per iteration in the candidate.",
      value: (row) => row.b_kernels,
      unit: "count",
      missing: "–",
      width: "118px",
    },
    {
      id: "aroof",
      header: "Base roof",
      definition: DEFINITIONS.ofRoof,
      value: (row) => row.a_roof_percent,
      unit: "percent",
      missing: "–",
      width: "96px",
    },
    {
      id: "broof",
      header: "Cand. roof",
      definition: DEFINITIONS.ofRoof,
      value: (row) => row.b_roof_percent,
      unit: "percent",
      missing: "–",
      width: "100px",
    },
    {
      id: "match",
      header: "Match",
      definition: "Why the op is in one run only, or how its partner was found.",
      value: (row) => matchText(row, data),
      filter: "choice",
      width: "190px",
    },
    { id: "type", header: "Op type", definition: DEFINITIONS.opType, value: (row) => row.op_type, width: "190px" },
    {
      id: "module",
      header: "Module",
      definition: DEFINITIONS.module,
      value: (row) => row.module || null,
      missing: "–",
      width: "180px",
    },
  ];
}

export function CompareOps({ data }: { data: ComparePage }) {
  const columns = useMemo(() => columnsFor(data), [data]);
  return (
    <Card
      title="Ops"
      actions={
        <span class="muted small">
          <Term of="matched">matched</Term>: <Value value={data.shares.base.matched_of_model} unit="percent" /> of the
          base, <Value value={data.shares.candidate.matched_of_model} unit="percent" /> of the candidate
        </span>
      }
    >
      <DataTable
        name={`compare ${data.a.ref.run} ${data.b.ref.run}`}
        testId="compare-table"
        options={compareTable}
        columns={columns}
        rows={data.ops}
        rowId={(row) => row.id}
        selected={pairParam.value}
        onSelect={(row) => drill(data, pairParam.to(row.id), pairModuleParam.to(keyOfModule(row.listed_in)))}
        totalRows={data.total_rows}
      />
    </Card>
  );
}
