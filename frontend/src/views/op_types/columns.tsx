/** The columns of the op types. */
import type { OpTypeRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";

/** Without a GPU the time is that of the CPU, and its columns are left out: they could only say "unknown". */
export function opTypeColumns(hasGpu: boolean): Column<OpTypeRow>[] {
  const gpu: Column<OpTypeRow> = {
    id: "gpu",
    tasks: ["time", "tensor_cores"],
    header: "GPU time",
    definition: DEFINITIONS.gpuTime,
    value: (row) => row.gpu_ns,
    sums: true,
    unit: "ns",
    width: "96px",
  };
  const cpu: Column<OpTypeRow>[] = [
    {
      id: "self",
      tasks: hasGpu ? ["cpu"] : ["time", "cpu"],
      header: "CPU self",
      definition: DEFINITIONS.cpuSelf,
      value: (row) => row.cpu_self_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "cpu",
      tasks: ["time", "cpu"],
      header: "CPU total",
      definition: DEFINITIONS.cpuTotal,
      value: (row) => row.cpu_total_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
  ];
  const tensorCores: Column<OpTypeRow>[] = [
    {
      id: "eligible",
      tasks: ["tensor_cores"],
      header: "TC eligible",
      definition: DEFINITIONS.tcEligible,
      value: (row) => row.tc_eligible,
      filter: "choice",
      cell: (row) => <Verdict value={row.tc_eligible} />,
      width: "104px",
    },
    {
      id: "eligibletime",
      tasks: ["tensor_cores"],
      header: "Eligible",
      definition: DEFINITIONS.eligibleTime,
      value: (row) => row.eligible_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "tc",
      tasks: ["tensor_cores"],
      header: "On TC",
      definition: DEFINITIONS.tcTime,
      value: (row) => row.tc_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "utilization",
      tasks: ["time", "tensor_cores"],
      header: "TC %",
      definition: DEFINITIONS.typeUtilization,
      value: (row) => row.utilization_percent,
      unit: "percent",
      cell: (row) => (row.eligible_ns === 0 ? <span class="missing">–</span> : undefined),
      width: "80px",
    },
    {
      id: "kernels",
      tasks: ["time", "cpu"],
      header: "Kernel calls",
      definition: DEFINITIONS.kernelCalls,
      value: (row) => row.kernel_calls,
      sums: true,
      unit: "count",
      width: "104px",
    },
  ];
  return [
    { id: "name", header: "Op type", definition: DEFINITIONS.opType, value: (row) => row.op_type, width: "270px" },
    ...(hasGpu ? [gpu] : cpu),
    {
      id: "share",
      tasks: ["time", "tensor_cores"],
      header: hasGpu ? "GPU %" : "CPU %",
      definition: hasGpu ? DEFINITIONS.opTypeGpu : DEFINITIONS.opTypeCpu,
      value: (row) => row.percent,
      unit: "percent",
      bar: true,
      width: "110px",
    },
    {
      id: "forward",
      tasks: ["time"],
      header: "Forward",
      definition: DEFINITIONS.typeForward,
      value: (row) => row.forward_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "backward",
      tasks: ["time"],
      header: "Backward",
      definition: DEFINITIONS.typeBackward,
      value: (row) => row.backward_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "ops",
      tasks: ["time", "tensor_cores", "cpu"],
      header: "Ops",
      definition: DEFINITIONS.typeOps,
      value: (row) => row.ops,
      unit: "count",
      width: "70px",
    },
    {
      id: "calls",
      tasks: ["time", "cpu"],
      header: "Calls",
      definition: DEFINITIONS.calls,
      value: (row) => row.calls,
      sums: true,
      unit: "count",
      width: "76px",
    },
    ...(hasGpu ? [...tensorCores, ...cpu] : []),
  ];
}
