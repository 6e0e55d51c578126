/** The ops of both runs, matched, with what each gained or lost. */
import { useMemo } from "preact/hooks";
import * as columns from "../../api/columns";
import type { CompareOp, ComparePage } from "../../api/types";
import { Card } from "../../components/Card";
import { CutName } from "../../components/CutName";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
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
  const each = `${data.basis === "gpu" ? "GPU time" : "CPU time"} of the op per iteration`;
  return tableColumns(columns.CompareOp, {
    name: { cell: (row) => <CutName name={row.dims ? `${row.name} ${row.dims}` : row.name} /> },
    a_ns: { definition: `${each}, in the base.`, cell: (row) => <SideTime id={row.a_id} ns={row.a_ns} /> },
    b_ns: { definition: `${each}, in the candidate.`, cell: (row) => <SideTime id={row.b_id} ns={row.b_ns} /> },
    difference_ns: { cell: (row) => <Difference row={row} /> },
    a_using_tc: { cell: (row) => <SideVerdict id={row.a_id} value={row.a_using_tc} /> },
    b_using_tc: { cell: (row) => <SideVerdict id={row.b_id} value={row.b_using_tc} /> },
    reason: { value: (row) => matchText(row, data) },
  });
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
