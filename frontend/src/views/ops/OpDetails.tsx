/** One op: what it is, its kernels, its input shapes and its time in each iteration. */
import type { OpDetail, OpKernel, OpShapes } from "../../api/types";
import { RelatedLinks } from "../filter/RelatedLinks";
import { OpIterations } from "../../features/chart/OpIterations";
import { Facts } from "../../components/Facts";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";
import { precisionOf } from "../kernels/precision";
import { goTo } from "../../state/navigate";
import { kernelParam } from "../../state/sharedParams";

const KERNELS: Column<OpKernel>[] = [
  {
    id: "name",
    header: "Kernel",
    definition: DEFINITIONS.kernelName,
    value: (row) => row.name,
    cell: (row) => row.short_name,
    width: "190px",
  },
  {
    id: "total",
    header: "Total",
    definition: DEFINITIONS.totalTime,
    value: (row) => row.total_ns,
    sums: true,
    unit: "ns",
    width: "86px",
  },
  {
    id: "share",
    header: "%",
    definition: "Share of the op's GPU time.",
    value: (row) => row.percent,
    unit: "percent",
    width: "84px",
  },
  {
    id: "tc",
    header: "On TC",
    definition: DEFINITIONS.kernelTc,
    value: (row) => row.tensor_core,
    cell: (row) => (
      <span data-tip={`Decided by: ${row.rule || "unknown"}`} tabIndex={0}>
        <Verdict value={row.tensor_core} />
      </span>
    ),
    width: "80px",
  },
  { id: "precision", header: "Precision", definition: DEFINITIONS.kernelPrecision, value: precisionOf, width: "80px" },
  {
    id: "average",
    header: "Mean",
    definition: DEFINITIONS.averageTime,
    value: (row) => row.average_ns,
    unit: "ns",
    width: "86px",
  },
  {
    id: "calls",
    header: "Calls",
    definition: DEFINITIONS.calls,
    value: (row) => row.calls,
    sums: true,
    unit: "count",
    width: "66px",
  },
  {
    id: "family",
    header: "Family",
    definition: DEFINITIONS.kernelFamily,
    value: (row) => row.family || null,
    width: "110px",
  },
  {
    id: "bytes",
    header: "Bytes",
    definition: DEFINITIONS.bytes,
    value: (row) => row.bytes,
    sums: true,
    unit: "bytes",
    missing: "–",
    width: "86px",
  },
];

const SHAPES: Column<OpShapes>[] = [
  {
    id: "shapes",
    header: "Shapes",
    definition: DEFINITIONS.shapes,
    value: (row) => row.shapes || null,
    width: "240px",
  },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, value: (row) => row.dtypes || null, width: "140px" },
  {
    id: "calls",
    header: "Calls",
    definition: DEFINITIONS.calls,
    value: (row) => row.calls,
    sums: true,
    unit: "count",
    width: "66px",
  },
  {
    id: "gpu",
    header: "GPU time",
    definition: DEFINITIONS.gpuTime,
    value: (row) => row.gpu_ns,
    sums: true,
    unit: "ns",
    width: "90px",
  },
  {
    id: "cpu",
    header: "CPU total",
    definition: DEFINITIONS.cpuTotal,
    value: (row) => row.cpu_total_ns,
    sums: true,
    unit: "ns",
    width: "90px",
  },
];

export function OpDetails({ data, hasGpu }: { data: OpDetail; hasGpu: boolean }) {
  const { row } = data;
  return (
    <>
      <h2 class="pane-title">{row.name}</h2>
      <RelatedLinks subject={{ kind: "op", id: row.id }} hasGpu={hasGpu} />
      <Facts
        rows={[
          [<Term of="opType">Op type</Term>, row.op_type],
          [<Term of="pass">Pass</Term>, row.role],
          [<Term of="gpuTime">GPU time</Term>, <Sum value={row.gpu_ns} unit="ns" />],
          [<Term of="cpuTotal">CPU total</Term>, <Sum value={row.cpu_total_ns} unit="ns" />],
          [<Term of="tcEligible">TC eligible</Term>, <Verdict value={row.tc_eligible} />],
          [<Term of="usingTc">Using TC</Term>, <Verdict value={row.using_tc} />],
          [
            <Term of="precision">Precision</Term>,
            <Text value={row.precision} missing={row.tc_eligible === "no" ? "–" : "unknown"} />,
          ],
          [<Term of="calls">Calls</Term>, <Sum value={row.calls} unit="count" />],
        ]}
      />
      {data.eligibility_reason && <p class="reason">{data.eligibility_reason}</p>}
      {data.rate && (
        <>
          <h3>
            <Term of="roof">Roofline</Term>
          </h3>
          <Facts
            rows={[
              [<Term of="flopRate">Rate</Term>, <Value value={data.rate.flops_per_second} unit="flops_per_second" />],
              [
                <Term of="roofPercent">Of the roof</Term>,
                <Value value={data.rate.percent_of_ceiling} unit="percent" />,
              ],
              [
                <Term of="roof">Roof</Term>,
                <Value value={data.rate.ceiling_flops_per_second} unit="flops_per_second" />,
              ],
              [
                <Term of="bound">Bound by</Term>,
                <Text value={data.rate.bound === "unknown" ? null : data.rate.bound} />,
              ],
            ]}
          />
        </>
      )}
      {data.launches.launches > 0 && (
        <>
          <h3>Launches</h3>
          <Facts
            rows={[
              [<Term of="kernelCalls">Kernel calls</Term>, <Sum value={data.launches.launches} unit="count" />],
              [<Term of="launchDelay">Mean delay</Term>, <Value value={data.launches.mean_delay_ns} unit="ns" />],
              [<Term of="launchDelay">Longest delay</Term>, <Value value={data.launches.max_delay_ns} unit="ns" />],
            ]}
          />
        </>
      )}
      <h3>Kernels</h3>
      <DataTable
        name="kernels of the op"
        plain
        columns={KERNELS}
        rows={data.kernels}
        rowId={(kernel) => kernel.id}
        onSelect={(kernel) => goTo("kernels", kernelParam.to(kernel.id))}
      />
      <h3>Iterations</h3>
      <OpIterations op={row.name} iterations={data.iterations} hasGpu={hasGpu} />
      {data.bars_note && <p class="muted small">{data.bars_note}</p>}
      <h3>Input shapes</h3>
      <DataTable
        name="shapes of the op"
        plain
        columns={SHAPES}
        rows={data.shapes}
        rowId={(shape) => `${shape.shapes} ${shape.dtypes}`}
      />
    </>
  );
}
