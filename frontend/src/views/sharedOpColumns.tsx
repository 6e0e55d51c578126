/** The columns that tables of ops and tables of their types have in common. */
import type { OpRow } from "../api/types";
import type { Column } from "../components/table/columns";
import type { Task } from "../components/table/tasks";
import { Verdict } from "../components/Verdict";
import { DEFINITIONS } from "../format/definitions";

type With<Field extends keyof OpRow> = Pick<OpRow, Field>;

export const gpuTimeColumn = <Row extends With<"gpu_ns">>(tasks: readonly Task[]): Column<Row> => ({
  id: "gpu",
  tasks,
  header: "GPU time",
  definition: DEFINITIONS.gpuTime,
  value: (row) => row.gpu_ns,
  sums: true,
  unit: "ns",
  width: "96px",
});

export const cpuTotalColumn = <Row extends With<"cpu_total_ns">>(): Column<Row> => ({
  id: "cpu",
  tasks: ["time", "cpu"],
  header: "CPU total",
  definition: DEFINITIONS.cpuTotal,
  value: (row) => row.cpu_total_ns,
  sums: true,
  unit: "ns",
  width: "96px",
});

export const cpuSelfColumn = <Row extends With<"cpu_self_ns">>(tasks: readonly Task[]): Column<Row> => ({
  id: "self",
  tasks,
  header: "CPU self",
  definition: DEFINITIONS.cpuSelf,
  value: (row) => row.cpu_self_ns,
  sums: true,
  unit: "ns",
  width: "96px",
});

export const eligibleColumn = <Row extends With<"tc_eligible">>(): Column<Row> => ({
  id: "eligible",
  tasks: ["tensor_cores"],
  header: "TC eligible",
  definition: DEFINITIONS.tcEligible,
  value: (row) => row.tc_eligible,
  filter: "choice",
  cell: (row) => <Verdict value={row.tc_eligible} />,
  width: "104px",
});

export const usingTcColumn = <Row extends With<"using_tc">>(): Column<Row> => ({
  id: "using",
  tasks: ["tensor_cores"],
  header: "Using TC",
  definition: DEFINITIONS.usingTc,
  value: (row) => row.using_tc,
  filter: "choice",
  cell: (row) => <Verdict value={row.using_tc} />,
  width: "104px",
});

export const kernelCallsColumn = <Row extends With<"kernel_calls">>(): Column<Row> => ({
  id: "kernels",
  tasks: ["time", "cpu"],
  header: "Kernel calls",
  definition: DEFINITIONS.kernelCalls,
  value: (row) => row.kernel_calls,
  sums: true,
  unit: "count",
  width: "104px",
});

export const callsColumn = <Row extends With<"calls">>(tasks: readonly Task[]): Column<Row> => ({
  id: "calls",
  tasks,
  header: "Calls",
  definition: DEFINITIONS.calls,
  value: (row) => row.calls,
  sums: true,
  unit: "count",
  width: "76px",
});
