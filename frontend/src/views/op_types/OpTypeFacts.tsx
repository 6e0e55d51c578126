/** What an op type's row holds, for its pane. */
import type { OpTypeRow } from "../../api/types";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Sum, Value } from "../../components/Value";

export function OpTypeFacts({ row, hasGpu }: { row: OpTypeRow; hasGpu: boolean }) {
  return (
    <Facts
      rows={[
        [
          hasGpu ? <Term of="opTypeGpu">GPU time</Term> : <Term of="opTypeCpu">CPU time</Term>,
          <Sum value={hasGpu ? row.gpu_ns : row.cpu_total_ns} unit="ns" />,
        ],
        ["Share", <Value value={row.percent} unit="percent" />],
        [<Term of="typeForward">Forward</Term>, <Sum value={row.forward_ns} unit="ns" />],
        [<Term of="typeBackward">Backward</Term>, <Sum value={row.backward_ns} unit="ns" />],
        [<Term of="typeOps">Ops</Term>, <Value value={row.ops} unit="count" />],
        [<Term of="calls">Calls</Term>, <Sum value={row.calls} unit="count" />],
      ]}
    />
  );
}
