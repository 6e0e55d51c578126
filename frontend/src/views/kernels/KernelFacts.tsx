/** What a kernel's row holds, for its pane: its full name, what decided its verdict, how it was launched. */
import type { KernelRow } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { precisionOf } from "./precision";

export function KernelFacts({ row }: { row: KernelRow }) {
  return (
    <>
      <CodeBlock code={row.name} label="Full name of the kernel" />
      <Facts
        rows={[
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
    </>
  );
}
