/** The columns of an op table, shared by the Ops page and the top ops of the Overview page. */
import type { OpRow } from "../api/types";
import type { Column } from "../components/table/columns";
import { DEFINITIONS } from "../format/definitions";
import { passColumn } from "./passColumn";
import {
  callsColumn,
  cpuSelfColumn,
  cpuTotalColumn,
  eligibleColumn,
  gpuTimeColumn,
  kernelCallsColumn,
  usingTcColumn,
} from "./sharedOpColumns";

/** Without a GPU the GPU columns are left out: they could only say "unknown". */
export function opColumns(hasGpu: boolean): Column<OpRow>[] {
  const gpu: Column<OpRow>[] = [
    gpuTimeColumn(["time", "tensor_cores", "shapes"]),
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
  const cpu: Column<OpRow>[] = [cpuTotalColumn(), cpuSelfColumn(["cpu"])];
  const tensorCores: Column<OpRow>[] = [eligibleColumn(), usingTcColumn(), kernelCallsColumn()];
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
    callsColumn(["time", "cpu", "shapes"]),
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
