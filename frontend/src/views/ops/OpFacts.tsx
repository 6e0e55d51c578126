/** What an op's row holds, for its pane. */
import type { OpRow } from "../../api/types";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Sum, Text } from "../../components/Value";

export function OpFacts({ row, hasGpu }: { row: OpRow; hasGpu: boolean }) {
  return (
    <Facts
      rows={[
        [<Term of="opType">Op type</Term>, row.op_type],
        [<Term of="pass">Pass</Term>, row.role],
        ...(hasGpu ? [[<Term of="gpuTime">GPU time</Term>, <Sum value={row.gpu_ns} unit="ns" />] as const] : []),
        [<Term of="cpuTotal">CPU total</Term>, <Sum value={row.cpu_total_ns} unit="ns" />],
        [
          <Term of="precision">Precision</Term>,
          <Text value={row.precision} missing={row.tc_eligible === "no" ? "–" : "unknown"} />,
        ],
        [<Term of="calls">Calls</Term>, <Sum value={row.calls} unit="count" />],
      ]}
    />
  );
}
