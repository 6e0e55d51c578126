/** What the side panel shows of a selected op, op type, kernel or module, the same for all of them. */
import * as columns from "../../api/columns";
import type { WorkDetail, WorkLaunches, WorkMemory, WorkSpot, WorkTensorCores } from "../../api/types";
import { Facts } from "../../components/Facts";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Sum, Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { formatCount, formatPercent } from "../../format/number";
import { goTo, openPage } from "../../state/navigate";
import { filterParam, kernelParam, opParam } from "../../state/sharedParams";
import { eventParam, iterationParam } from "../timeline/params";
import { WorkIterations } from "./WorkIterations";

const KERNELS = tableColumns(columns.OpKernel, {
  name: { cell: (row) => row.short_name },
  tensor_core: {
    cell: (row) => (
      <span data-tip={`Decided by: ${row.rule || "unknown"}`} tabIndex={0}>
        <Verdict value={row.tensor_core} />
      </span>
    ),
  },
});
const SHAPES = tableColumns(columns.OpShapes);
const OPS = tableColumns(columns.WorkOp, {
  name: { value: (row) => (row.direction === "backward" ? `${row.name} (backward)` : row.name) },
});

/** All that the server says of it, for the unit of the page. */
export function WorkSections({ data }: { data: WorkDetail }) {
  return (
    <>
      <h3>Iterations</h3>
      <WorkIterations name={data.name} iterations={data.iterations} hasGpu={data.has_gpu} />
      {data.bars_note && <p class="muted small">{data.bars_note}</p>}
      {data.longest && <Longest kind={data.kind} id={data.id} spot={data.longest} />}
      {data.tensor_cores && <TensorCores data={data.tensor_cores} />}
      {data.has_gpu && <Roof data={data} />}
      {data.has_gpu && <Launches launches={data.launches} />}
      {data.memory && data.memory.allocations > 0 && <Memory memory={data.memory} />}
      {data.kernels.length > 0 && (
        <>
          <h3>Kernels{firstOf(data.kernels.length, data.total_kernels)}</h3>
          <DataTable
            name="its kernels"
            plain
            columns={KERNELS}
            rows={data.kernels}
            rowId={(kernel) => kernel.id}
            onSelect={(kernel) => goTo("kernels", kernelParam.to(kernel.id))}
          />
        </>
      )}
      {data.ops.length > 0 && (
        <>
          <h3>
            {data.kind === "kernel" ? <Term of="kernelOps">Launched by</Term> : "Ops"}
            {firstOf(data.ops.length, data.total_ops)}
          </h3>
          <DataTable
            name="its ops"
            plain
            columns={OPS}
            rows={data.ops}
            rowId={(op) => op.id}
            onSelect={(op) => goTo("ops", opParam.to(op.id))}
          />
        </>
      )}
      {data.shapes.length > 0 && (
        <>
          <h3>Input shapes{firstOf(data.shapes.length, data.total_shapes)}</h3>
          <DataTable
            name="its shapes"
            plain
            columns={SHAPES}
            rows={data.shapes}
            rowId={(shape) => `${shape.shapes} ${shape.dtypes}`}
          />
        </>
      )}
    </>
  );
}

const firstOf = (shown: number, all: number): string =>
  shown < all ? `, the first ${shown} of ${formatCount(all)}` : "";

/** Where it runs: the way to the longest of its launches or calls on the timeline. */
function Longest({ kind, id, spot }: { kind: WorkDetail["kind"]; id: string; spot: WorkSpot }) {
  const open = (): void =>
    goTo(
      "timeline",
      iterationParam.to(spot.index),
      eventParam.to(spot.event),
      opParam.to(kind === "op" ? id : null),
      kernelParam.to(kind === "kernel" ? id : null),
    );
  return (
    <p class="small" data-testid="work-longest">
      Longest:{" "}
      <button type="button" class="link" onClick={open}>
        {spot.name}
      </button>
      , <Value value={spot.duration_ns} unit="ns" /> in iteration {spot.number}.
    </p>
  );
}

function TensorCores({ data }: { data: WorkTensorCores }) {
  return (
    <>
      <h3>Tensor Cores</h3>
      <Facts
        rows={[
          [<Term of="tcEligible">TC eligible</Term>, <Verdict value={data.eligible} />],
          [<Term of="usingTc">Using TC</Term>, <Verdict value={data.using} />],
          ...(data.eligible_ns
            ? [
                [
                  <Term of="opUtilization">TC utilization</Term>,
                  <span>
                    <Value value={data.utilization_percent} unit="percent" /> of{" "}
                    <Sum value={data.eligible_ns} unit="ns" />
                  </span>,
                ] as const,
              ]
            : []),
        ]}
      />
      {data.reason && <p class="reason">{data.reason}</p>}
    </>
  );
}

/** Its place on the roofline in one line, with the way there. */
function Roof({ data: { kind, id, rate } }: { data: WorkDetail }) {
  if (kind === "kernel")
    return <p class="muted small">FLOPs are counted by op: the ops below have places on the roofline.</p>;
  if (!rate) return null;
  const share = rate.percent_of_ceiling;
  return (
    <>
      <h3>
        <Term of="roof">Roofline</Term>
      </h3>
      <p data-testid="work-roof">
        <button type="button" class="link" onClick={() => openPage("roofline", filterParam.to({ kind, id }))}>
          {share === null
            ? "Its share of the roof is unknown"
            : `${formatPercent(share)} of the roof${rate.roof ? ` of ${rate.roof}` : ""}${rate.bound === "unknown" ? "" : `, ${rate.bound}-bound`}`}
        </button>
        {rate.flops_per_second !== null && (
          <>
            : <Value value={rate.flops_per_second} unit="flops_per_second" />
            {rate.ceiling_flops_per_second !== null && (
              <>
                {" "}
                of <Value value={rate.ceiling_flops_per_second} unit="flops_per_second" />
              </>
            )}
          </>
        )}
      </p>
      {share !== null && (
        <div class="meter" aria-hidden="true">
          <i style={{ width: `${Math.min(100, share)}%` }} />
        </div>
      )}
    </>
  );
}

function Launches({ launches }: { launches: WorkLaunches }) {
  if (launches.launches === 0) return null;
  return (
    <>
      <h3>Launches and waits</h3>
      <Facts
        rows={[
          [<Term of="kernelCalls">Kernel calls</Term>, <Sum value={launches.launches} unit="count" />],
          [<Term of="launchDelay">Mean delay</Term>, <Value value={launches.mean_delay_ns} unit="ns" />],
          [<Term of="launchDelay">Longest delay</Term>, <Value value={launches.max_delay_ns} unit="ns" />],
          [<Term of="waitedBefore">GPU idle before it</Term>, <Sum value={launches.waited_ns} unit="ns" />],
        ]}
      />
    </>
  );
}

function Memory({ memory }: { memory: WorkMemory }) {
  return (
    <>
      <h3>Memory</h3>
      <Facts
        rows={[
          [
            <Term of="heldAtPeak">In use at the peak</Term>,
            <span>
              <Value value={memory.bytes} unit="bytes" /> (<Value value={memory.percent} unit="percent" />)
            </span>,
          ],
          ["Device", memory.device === "cpu" ? "CPU" : `GPU ${memory.device}`],
        ]}
      />
    </>
  );
}
