/** The columns of the op types. */
import type { OpTypeRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import {
  callsColumn,
  cpuSelfColumn,
  cpuTotalColumn,
  eligibleColumn,
  gpuTimeColumn,
  kernelCallsColumn,
} from "../sharedOpColumns";

/** Without a GPU the time is that of the CPU, and its columns are left out: they could only say "unknown". */
export function opTypeColumns(hasGpu: boolean): Column<OpTypeRow>[] {
  const gpu: Column<OpTypeRow> = gpuTimeColumn(["time", "tensor_cores"]);
  const cpu: Column<OpTypeRow>[] = [cpuSelfColumn(hasGpu ? ["cpu"] : ["time", "cpu"]), cpuTotalColumn()];
  const tensorCores: Column<OpTypeRow>[] = [
    eligibleColumn(),
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
    kernelCallsColumn(),
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
    callsColumn(["time", "cpu"]),
    ...(hasGpu ? [...tensorCores, ...cpu] : []),
  ];
}
