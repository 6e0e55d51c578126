/** The columns of an op table, shared by the Ops page and the top ops of the Overview page. */
import type { OpRow } from "../api/types";
import type { Column } from "../components/table/columns";
import { Verdict } from "../components/Verdict";
import { DEFINITIONS } from "../format/definitions";
import { passColumn } from "./passColumn";

/** Without a GPU the GPU columns are left out: they could only say "unknown". */
export function opColumns(hasGpu: boolean): Column<OpRow>[] {
  const gpu: Column<OpRow>[] = [
    {
      id: "gpu",
      tasks: ["time", "tensor_cores", "shapes"],
      header: "GPU time",
      definition: DEFINITIONS.gpuTime,
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
      definition: DEFINITIONS.gpuPercent,
      value: (row) => row.gpu_percent,
      unit: "percent",
      width: "110px",
    },
  ];
  const cpu: Column<OpRow>[] = [
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
    {
      id: "self",
      tasks: ["cpu"],
      header: "CPU self",
      definition: DEFINITIONS.cpuSelf,
      value: (row) => row.cpu_self_ns,
      sums: true,
      unit: "ns",
      width: "96px",
    },
  ];
  const tensorCores: Column<OpRow>[] = [
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
      id: "using",
      tasks: ["tensor_cores"],
      header: "Using TC",
      definition: DEFINITIONS.usingTc,
      value: (row) => row.using_tc,
      filter: "choice",
      cell: (row) => <Verdict value={row.using_tc} />,
      width: "104px",
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
    {
      id: "name",
      header: "Op",
      definition: DEFINITIONS.opName,
      value: (row) => row.name,
      width: "270px",
    },
    passColumn((row) => row.role, "90px", ["time", "tensor_cores", "cpu", "shapes"]),
    ...(hasGpu ? gpu : cpu),
    {
      id: "calls",
      tasks: ["time", "cpu", "shapes"],
      header: "Calls",
      definition: DEFINITIONS.calls,
      value: (row) => row.calls,
      sums: true,
      unit: "count",
      width: "76px",
    },
    ...(hasGpu ? tensorCores : []),
    {
      id: "precision",
      tasks: ["tensor_cores", "shapes"],
      header: "Precision",
      definition: DEFINITIONS.precision,
      // An op without matrix math has no precision of it, which is not the same as an unknown one.
      value: (row) => row.precision || (row.tc_eligible === "no" ? "–" : null),
      filter: "choice",
      width: "104px",
    },
    {
      id: "type",
      tasks: ["time", "tensor_cores"],
      header: "Op type",
      definition: DEFINITIONS.opType,
      value: (row) => row.op_type,
      filter: "choice",
      width: "150px",
    },
    ...(hasGpu ? cpu : []),
    {
      id: "module",
      header: "Module",
      definition: DEFINITIONS.module,
      value: (row) => row.module || null,
      missing: "–",
      width: "200px",
    },
    {
      id: "shapes",
      tasks: ["shapes"],
      header: "Shapes",
      definition: DEFINITIONS.shapes,
      value: (row) => row.shapes || null,
      width: "220px",
    },
    {
      id: "dtypes",
      tasks: ["shapes"],
      header: "Types",
      definition: DEFINITIONS.dtypes,
      value: (row) => row.dtypes || null,
      width: "140px",
    },
  ];
}
