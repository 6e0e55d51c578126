/** The selected module: its numbers in words, and the way to its ops. */
import type { ModuleRow } from "../../api/types";
import { RelatedLinks } from "../filter/RelatedLinks";
import { Facts } from "../../components/Facts";
import { Pane } from "../../components/Pane";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { keyOf, labelOf } from "./tree";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { filterParam, moduleParam, opParam } from "../../state/sharedParams";

interface ModulePaneProps {
  row: ModuleRow;
  model: string;
  hasGpu: boolean;
}

export function ModulePane({ row, model, hasGpu }: ModulePaneProps) {
  const isModule = row.role === null;
  const subject = { kind: "module", id: keyOf(row) } as const;
  return (
    <Pane of="module" testId="module-detail" onClose={() => assign(moduleParam.to(null))}>
      <h2 class="pane-title">{row.path || labelOf(row, model)}</h2>
      <p>
        <button
          type="button"
          class="button"
          data-testid="module-ops"
          onClick={() => goTo("ops", opParam.to(null), filterParam.to(isModule && !row.path ? null : subject))}
        >
          Show {isModule && !row.path ? "all" : "its"} ops
        </button>
      </p>
      {(row.path || !isModule) && <RelatedLinks subject={subject} without="ops" hasGpu={hasGpu} />}
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
          <h3>Tensor Cores</h3>
          <Facts
            rows={[
              [
                <Term of="moduleUtilization">Utilization</Term>,
                <Value
                  value={row.utilization_percent}
                  unit="percent"
                  missing={row.eligible_ns === 0 ? "–" : "unknown"}
                />,
              ],
              [<Term of="moduleEligible">Eligible time</Term>, <Sum value={row.eligible_ns} unit="ns" />],
              [<Term of="moduleTc">On Tensor Cores</Term>, <Sum value={row.tc_ns} unit="ns" />],
              [<Term of="moduleEligibleOps">Eligible ops</Term>, <Value value={row.tc_eligible_ops} unit="count" />],
              [<Term of="moduleUsingOps">Ops using them</Term>, <Value value={row.tc_using_ops} unit="count" />],
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
    </Pane>
  );
}
