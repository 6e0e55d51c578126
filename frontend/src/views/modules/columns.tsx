/** The columns of the module table. */
import type { ModuleRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { labelOf, type ModuleTree } from "./tree";

/** Without a GPU the GPU columns are left out: they could only say "unknown". */
export function moduleColumns(hasGpu: boolean, model: string, typed: boolean, tree: ModuleTree): Column<ModuleRow>[] {
  const gpu: Column<ModuleRow>[] = [
    {
      id: "gpu",
      tasks: ["time", "tensor_cores"],
      header: "GPU time",
      definition: DEFINITIONS.moduleGpu,
      value: (row) => row.gpu_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "share",
      bar: true,
      tasks: ["time"],
      header: "GPU %",
      definition: DEFINITIONS.moduleShare,
      value: (row) => row.gpu_percent,
      unit: "percent",
      width: "110px",
    },
    {
      id: "forward",
      tasks: ["time"],
      header: "Forward",
      definition: DEFINITIONS.moduleForward,
      value: (row) => row.gpu_forward_ns,
      sums: true,
      unit: "ns",
      missing: "–",
      width: "92px",
    },
    {
      id: "backward",
      tasks: ["time"],
      header: "Backward",
      definition: DEFINITIONS.moduleBackward,
      value: (row) => row.gpu_backward_ns,
      sums: true,
      unit: "ns",
      missing: "–",
      width: "92px",
    },
    {
      id: "own",
      tasks: ["time"],
      header: "Own",
      definition: DEFINITIONS.moduleOwn,
      value: (row) => row.gpu_own_ns,
      sums: true,
      unit: "ns",
      width: "92px",
    },
  ];
  const tensorCores: Column<ModuleRow>[] = [
    {
      id: "eligible",
      tasks: ["tensor_cores"],
      header: "TC eligible",
      definition: DEFINITIONS.moduleEligible,
      value: (row) => row.eligible_ns,
      sums: true,
      unit: "ns",
      width: "100px",
    },
    {
      id: "tc",
      tasks: ["tensor_cores"],
      header: "On TC",
      definition: DEFINITIONS.moduleTc,
      value: (row) => row.tc_ns,
      sums: true,
      unit: "ns",
      width: "92px",
    },
    {
      id: "utilization",
      tasks: ["tensor_cores"],
      header: "TC %",
      definition: DEFINITIONS.moduleUtilization,
      value: (row) => row.utilization_percent,
      unit: "percent",
      cell: (row) => (row.eligible_ns === 0 ? <span class="missing">–</span> : undefined),
      width: "80px",
    },
    {
      id: "eligibleops",
      tasks: ["tensor_cores"],
      header: "Eligible ops",
      definition: DEFINITIONS.moduleEligibleOps,
      value: (row) => row.tc_eligible_ops,
      unit: "count",
      width: "104px",
    },
    {
      id: "usingops",
      tasks: ["tensor_cores"],
      header: "Using TC",
      definition: DEFINITIONS.moduleUsingOps,
      value: (row) => row.tc_using_ops,
      unit: "count",
      width: "88px",
    },
    {
      id: "kernels",
      tasks: ["time"],
      header: "Kernels",
      definition: DEFINITIONS.moduleKernels,
      value: (row) => row.kernel_calls,
      sums: true,
      unit: "count",
      width: "84px",
    },
  ];
  const cpu: Column<ModuleRow>[] = [
    {
      id: "cpu",
      tasks: ["cpu"],
      header: "CPU time",
      definition: DEFINITIONS.moduleCpu,
      value: (row) => row.cpu_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
    {
      id: "cpushare",
      bar: true,
      tasks: ["cpu"],
      header: "CPU %",
      definition: DEFINITIONS.moduleCpuShare,
      value: (row) => row.cpu_percent,
      unit: "percent",
      width: "110px",
    },
    {
      id: "cpuforward",
      tasks: ["cpu"],
      header: hasGpu ? "CPU forward" : "Forward",
      definition: DEFINITIONS.moduleForward,
      value: (row) => row.cpu_forward_ns,
      sums: true,
      unit: "ns",
      missing: "–",
      width: "106px",
    },
    {
      id: "cpubackward",
      tasks: ["cpu"],
      header: hasGpu ? "CPU backward" : "Backward",
      definition: DEFINITIONS.moduleBackward,
      value: (row) => row.cpu_backward_ns,
      sums: true,
      unit: "ns",
      missing: "–",
      width: "114px",
    },
    {
      id: "cpuown",
      tasks: ["cpu"],
      header: hasGpu ? "CPU own" : "Own",
      definition: DEFINITIONS.moduleOwn,
      value: (row) => row.cpu_own_ns,
      sums: true,
      unit: "ns",
      width: "92px",
    },
  ];
  const spread: Column<ModuleRow>[] = hasGpu
    ? [
        {
          id: "min",
          tasks: ["time"],
          header: "GPU min",
          definition: DEFINITIONS.moduleMin,
          value: (row) => row.gpu_min_ns,
          unit: "ns",
          width: "92px",
        },
        {
          id: "max",
          tasks: ["time"],
          header: "GPU max",
          definition: DEFINITIONS.moduleMax,
          value: (row) => row.gpu_max_ns,
          unit: "ns",
          width: "92px",
        },
        {
          id: "sum",
          header: "GPU sum",
          definition: DEFINITIONS.moduleGpuSum,
          value: (row) => row.gpu_sum_ns,
          sums: true,
          unit: "ns",
          width: "92px",
        },
      ]
    : [];
  return [
    {
      id: "name",
      header: "Module",
      definition: DEFINITIONS.modulePath,
      value: (row) => row.path || labelOf(row, model),
      cell: (row) => {
        const left = row.children - (tree.below.get(row.path || ".")?.length ?? 0);
        return (
          <>
            {labelOf(row, model)}
            {row.role === null && left > 0 && <span class="muted"> ({left} left out)</span>}
          </>
        );
      },
      width: "280px",
    },
    ...(typed
      ? [
          {
            id: "type",
            header: "Type",
            definition: DEFINITIONS.moduleType,
            value: (row: ModuleRow) => row.type || null,
            missing: "–",
            width: "130px",
          },
        ]
      : []),
    ...(hasGpu ? gpu : cpu.map((column) => ({ ...column, tasks: ["time", "cpu"] as const }))),
    {
      id: "calls",
      tasks: ["time", "cpu"],
      header: "Calls",
      definition: DEFINITIONS.moduleCalls,
      value: (row) => row.calls,
      sums: true,
      unit: "count",
      missing: "–",
      width: "76px",
    },
    ...(hasGpu ? [...tensorCores, ...cpu] : []),
    ...spread,
    {
      id: "cpumin",
      tasks: ["cpu"],
      header: "CPU min",
      definition: DEFINITIONS.moduleMin,
      value: (row) => row.cpu_min_ns,
      unit: "ns",
      width: "92px",
    },
    {
      id: "cpumax",
      tasks: ["cpu"],
      header: "CPU max",
      definition: DEFINITIONS.moduleMax,
      value: (row) => row.cpu_max_ns,
      unit: "ns",
      width: "92px",
    },
    {
      id: "opcalls",
      tasks: ["cpu"],
      header: "Op calls",
      definition: DEFINITIONS.moduleOpCalls,
      value: (row) => row.op_calls,
      sums: true,
      unit: "count",
      width: "84px",
    },
    {
      id: "ops",
      tasks: ["cpu"],
      header: "Ops",
      definition: DEFINITIONS.moduleOps,
      value: (row) => row.ops,
      unit: "count",
      width: "70px",
    },
  ];
}
