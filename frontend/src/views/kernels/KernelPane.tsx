/** The selected kernel: its full name, what decided its verdict, how it was launched and by which ops. */
import type { KernelOp, KernelRow } from "../../api/types";
import { RelatedLinks } from "../filter/RelatedLinks";
import { CodeBlock } from "../../components/CodeBlock";
import { Facts } from "../../components/Facts";
import { Pane } from "../../components/Pane";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";
import { precisionOf } from "./precision";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { kernelParam, opParam } from "../../state/sharedParams";

const OPS: Column<KernelOp>[] = [
  {
    id: "name",
    header: "Op",
    definition: DEFINITIONS.opName,
    value: (row) => row.name,
    width: "280px",
  },
  {
    id: "total",
    header: "Total",
    definition: "Time of this kernel in calls by the op.",
    value: (row) => row.total_ns,
    sums: true,
    unit: "ns",
    width: "96px",
  },
];

export function KernelPane({ row }: { row: KernelRow }) {
  return (
    <Pane of="kernel" testId="kernel-detail" onClose={() => assign(kernelParam.to(null))}>
      <h2 class="pane-title">{row.short_name}</h2>
      <RelatedLinks subject={{ kind: "kernel", id: row.id }} />
      <CodeBlock code={row.name} label="Full name of the kernel" />
      <Facts
        rows={[
          [<Term of="kernelTc">Tensor Cores</Term>, <Verdict value={row.tensor_core} />],
          [<Term of="kernelRule">Decided by</Term>, <Text value={row.rule} />],
          [<Term of="kernelPrecision">Precision</Term>, <Text value={precisionOf(row)} />],
          [<Term of="kernelFamily">Family</Term>, <Text value={row.family} />],
          [<Term of="totalTime">Total</Term>, <Sum value={row.total_ns} unit="ns" />],
          [<Term of="calls">Calls</Term>, <Sum value={row.calls} unit="count" />],
          [
            <Term of="occupancy">Occupancy</Term>,
            <Value value={row.occupancy_percent} unit="percent" missing={row.kind === "kernel" ? "unknown" : "–"} />,
          ],
          [
            <Term of="grid">Grid × block</Term>,
            <Text value={row.grid && `${row.grid} × ${row.block}`} missing="not recorded" />,
          ],
        ]}
      />
      <h3>
        <Term of="kernelOps">Launched by</Term>
      </h3>
      <DataTable
        name="ops of the kernel"
        plain
        columns={OPS}
        rows={row.ops}
        rowId={(op) => op.id}
        onSelect={(op) => goTo("ops", opParam.to(op.id))}
      />
    </Pane>
  );
}
