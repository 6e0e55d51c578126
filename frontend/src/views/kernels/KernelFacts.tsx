/** What a kernel's row holds, for its pane: its full name, what decided its verdict, how it was launched. */
import type { ComponentChildren } from "preact";
import type { MeasuredCounters, KernelRow } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";

/** Nsight Compute's counters, where they were imported. */
function measured(counters: MeasuredCounters): [ComponentChildren, ComponentChildren][] {
  return [
    [<Term of="measuredDram">DRAM, measured</Term>, <Sum value={counters.dram_bytes} unit="bytes" />],
    [<Term of="measuredFlops">FLOPs, measured</Term>, <Sum value={counters.flops} unit="flops" />],
    [
      <Term of="measuredTensor">Tensor Core instructions, measured</Term>,
      <Sum value={counters.tensor_instructions} unit="count" />,
    ],
  ];
}

export function KernelFacts({ row }: { row: KernelRow }) {
  return (
    <>
      <CodeBlock code={row.name} label="Full name of the kernel" />
      <Facts
        rows={[
          [<Term of="kernelRule">Decided by</Term>, <Text value={row.rule} />],
          [
            <Term of="kernelPrecision">Precision</Term>,
            <Text value={row.precision || (row.tensor_core === "no" ? "–" : null)} />,
          ],
          [<Term of="kernelFamily">Family</Term>, <Text value={row.family} />],
          [<Term of="totalTime">Total</Term>, <Sum value={row.total_ns} unit="ns" />],
          [<Term of="calls">Calls</Term>, <Sum value={row.calls} unit="count" />],
          [
            <Term of="occupancy">Occupancy</Term>,
            <>
              <Value value={row.occupancy_percent} unit="percent" missing={row.kind === "kernel" ? "unknown" : "–"} />
              {row.occupancy_measured && " measured"}
            </>,
          ],
          ...(row.counters === null ? [] : measured(row.counters)),
          [
            <Term of="grid">Grid × block</Term>,
            <Text value={row.grid && `${row.grid} × ${row.block}`} missing="not recorded" />,
          ],
        ]}
      />
    </>
  );
}
