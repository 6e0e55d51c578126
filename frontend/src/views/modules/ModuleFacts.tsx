/** What a module's row holds, for its pane, and the way to its ops. */
import type { ModuleRow } from "../../api/types";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { goTo } from "../../state/navigate";
import { filterParam, opParam } from "../../state/sharedParams";
import { keyOf } from "./tree";

export function ModuleFacts({ row, hasGpu }: { row: ModuleRow; hasGpu: boolean }) {
  const isModule = row.role === null;
  const whole = isModule && !row.path;
  return (
    <>
      <p>
        <button
          type="button"
          class="button"
          data-testid="module-ops"
          onClick={() =>
            goTo("ops", opParam.to(null), filterParam.to(whole ? null : { kind: "module", id: keyOf(row) }))
          }
        >
          Show {whole ? "all" : "its"} ops
        </button>
      </p>
      {hasGpu && (
        <>
          <h3>GPU</h3>
          <Facts
            rows={[
              [<Term of="moduleGpu">GPU time</Term>, <Sum value={row.gpu_ns} unit="ns" />],
              [<Term of="moduleShare">Share</Term>, <Value value={row.gpu_percent} unit="percent" />],
              [<Term of="moduleForward">Forward</Term>, <Sum value={row.gpu_forward_ns} unit="ns" missing="–" />],
              [<Term of="moduleBackward">Backward</Term>, <Sum value={row.gpu_backward_ns} unit="ns" missing="–" />],
              [<Term of="moduleOwn">Own</Term>, <Sum value={row.gpu_own_ns} unit="ns" />],
              [<Term of="moduleGpuSum">Sum</Term>, <Sum value={row.gpu_sum_ns} unit="ns" />],
              [<Term of="moduleMin">Least</Term>, <Value value={row.gpu_min_ns} unit="ns" />],
              [<Term of="moduleMax">Most</Term>, <Value value={row.gpu_max_ns} unit="ns" />],
              [<Term of="moduleKernels">Kernels</Term>, <Sum value={row.kernel_calls} unit="count" />],
            ]}
          />
        </>
      )}
      <h3>CPU</h3>
      <Facts
        rows={[
          [<Term of="moduleCpu">CPU time</Term>, <Sum value={row.cpu_ns} unit="ns" />],
          [<Term of="moduleCpuShare">Share</Term>, <Value value={row.cpu_percent} unit="percent" />],
          [<Term of="moduleForward">Forward</Term>, <Sum value={row.cpu_forward_ns} unit="ns" missing="–" />],
          [<Term of="moduleBackward">Backward</Term>, <Sum value={row.cpu_backward_ns} unit="ns" missing="–" />],
          [<Term of="moduleOwn">Own</Term>, <Sum value={row.cpu_own_ns} unit="ns" />],
          [<Term of="moduleMin">Least</Term>, <Value value={row.cpu_min_ns} unit="ns" />],
          [<Term of="moduleMax">Most</Term>, <Value value={row.cpu_max_ns} unit="ns" />],
        ]}
      />
      <h3>Calls</h3>
      <Facts
        rows={[
          [<Term of="moduleType">Type</Term>, <Text value={row.type} missing={isModule ? "not recorded" : "–"} />],
          [<Term of="moduleCalls">Calls</Term>, <Sum value={row.calls} unit="count" missing="–" />],
          [<Term of="moduleOpCalls">Op calls</Term>, <Sum value={row.op_calls} unit="count" />],
          [<Term of="moduleOps">Ops</Term>, <Value value={row.ops} unit="count" />],
        ]}
      />
    </>
  );
}
