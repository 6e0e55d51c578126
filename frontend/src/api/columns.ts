// Generated from the row structs of the pages by `make generate`. Do not edit.
import type { Declared } from "../components/table/declared";
import { DEFINITIONS } from "../format/definitions";
import type * as Types from "./types";

export const Slice: readonly Declared<Types.Slice>[] = [
  { id: "label", header: "Part", definition: "What is part of the whole.", width: "104px" },
  { id: "value_ns", header: "Time", definition: "Its time in the selected iterations.", width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "Share", definition: "Its share of the whole.", width: "76px", unit: "percent" },
];

export const GpuUse: readonly Declared<Types.GpuUse>[] = [
  { id: "id", header: "GPU", definition: "Number of the GPU, as CUDA counts them in this process.", width: "76px", unit: "count" },
  { id: "name", header: "Name", definition: DEFINITIONS.gpuName, width: "220px" },
  { id: "utilization_percent", header: "Utilization", definition: DEFINITIONS.gpuUse, width: "111px", unit: "percent" },
  { id: "busy_ns", header: "Busy", definition: DEFINITIONS.gpuBusy, width: "76px", unit: "ns" },
  { id: "tensor_core_percent", header: "On Tensor Cores", definition: "Share of the wall-clock time in which a Tensor Core kernel ran on this GPU.", width: "139px", unit: "percent" },
  { id: "compute_capability", header: "Compute capability", definition: DEFINITIONS.gpuCapability, width: "160px" },
  { id: "sm_count", header: "SMs", definition: "Streaming multiprocessors: the units that kernels' blocks run on.", width: "76px", unit: "count" },
  { id: "memory_bytes", header: "Memory", definition: DEFINITIONS.gpuMemory, width: "76px", unit: "bytes" },
];

export const OpRow: readonly Declared<Types.OpRow>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "270px" },
  { id: "role", header: "Pass", definition: DEFINITIONS.pass, width: "90px", tasks: ["time", "tensor_cores", "cpu", "shapes"], filter: "choice" },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.gpuTime, width: "90px", unit: "ns", tasks: ["time", "tensor_cores", "shapes"], sums: true, gpu: true },
  { id: "gpu_percent", header: "GPU %", definition: "Share of the GPU time of all ops in the selected iterations.", width: "110px", unit: "percent", tasks: ["time"], bar: true, gpu: true },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", tasks: ["time", "cpu", "shapes"], sums: true },
  { id: "tc_eligible", header: "TC eligible", definition: DEFINITIONS.tcEligible, width: "111px", tasks: ["tensor_cores"], gpu: true, verdict: true, filter: "choice" },
  { id: "using_tc", header: "Using TC", definition: DEFINITIONS.usingTc, width: "104px", tasks: ["tensor_cores"], gpu: true, verdict: true, filter: "choice" },
  { id: "kernel_calls", header: "Kernel calls", definition: DEFINITIONS.kernelCalls, width: "118px", unit: "count", tasks: ["time", "cpu"], sums: true, gpu: true },
  { id: "precision", header: "Precision", definition: DEFINITIONS.precision, width: "104px", tasks: ["tensor_cores", "shapes"], filter: "choice", absent: ["tc_eligible", "no"] },
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "150px", tasks: ["time", "tensor_cores"], filter: "choice" },
  { id: "cpu_total_ns", header: "CPU total", definition: DEFINITIONS.cpuTotal, width: "97px", unit: "ns", tasks: ["time", "cpu"], sums: true },
  { id: "cpu_self_ns", header: "CPU self", definition: DEFINITIONS.cpuSelf, width: "90px", unit: "ns", tasks: ["cpu"], sums: true },
  { id: "module", header: "Module", definition: DEFINITIONS.module, width: "200px", missing: "–" },
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, width: "220px", tasks: ["shapes"] },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, width: "140px", tasks: ["shapes"] },
];

export const OpTypeRow: readonly Declared<Types.OpTypeRow>[] = [
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "270px" },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.gpuTime, width: "90px", unit: "ns", tasks: ["time", "tensor_cores"], sums: true, gpu: true },
  { id: "percent", header: "GPU %", definition: DEFINITIONS.opTypeGpu, width: "110px", unit: "percent", tasks: ["time", "tensor_cores"], bar: true },
  { id: "forward_ns", header: "Forward", definition: DEFINITIONS.typeForward, width: "83px", unit: "ns", tasks: ["time"], sums: true },
  { id: "backward_ns", header: "Backward", definition: DEFINITIONS.typeBackward, width: "90px", unit: "ns", tasks: ["time"], sums: true },
  { id: "ops", header: "Ops", definition: DEFINITIONS.typeOps, width: "76px", unit: "count", tasks: ["time", "tensor_cores", "cpu"] },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", tasks: ["time", "cpu"], sums: true },
  { id: "tc_eligible", header: "TC eligible", definition: DEFINITIONS.tcEligible, width: "111px", tasks: ["tensor_cores"], gpu: true, verdict: true, filter: "choice" },
  { id: "eligible_ns", header: "Eligible", definition: DEFINITIONS.eligibleTime, width: "90px", unit: "ns", tasks: ["tensor_cores"], sums: true, gpu: true },
  { id: "tc_ns", header: "On TC", definition: DEFINITIONS.tcTime, width: "76px", unit: "ns", tasks: ["tensor_cores"], sums: true, gpu: true },
  { id: "utilization_percent", header: "TC %", definition: DEFINITIONS.typeUtilization, width: "76px", unit: "percent", tasks: ["time", "tensor_cores"], gpu: true, absent: ["eligible_ns", "0"] },
  { id: "kernel_calls", header: "Kernel calls", definition: DEFINITIONS.kernelCalls, width: "118px", unit: "count", tasks: ["time", "cpu"], sums: true, gpu: true },
  { id: "cpu_self_ns", header: "CPU self", definition: DEFINITIONS.cpuSelf, width: "90px", unit: "ns", tasks: ["cpu"], sums: true },
  { id: "cpu_total_ns", header: "CPU total", definition: DEFINITIONS.cpuTotal, width: "97px", unit: "ns", tasks: ["time", "cpu"], sums: true },
];

export const WorkOp: readonly Declared<Types.WorkOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "280px" },
  { id: "time_ns", header: "Time", definition: "Time in calls by the op.", width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "%", definition: "Share of the op in all the time of what is selected.", width: "76px", unit: "percent" },
];

export const OpShapes: readonly Declared<Types.OpShapes>[] = [
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, width: "240px" },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, width: "140px" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", sums: true },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.gpuTime, width: "90px", unit: "ns", sums: true },
  { id: "cpu_total_ns", header: "CPU total", definition: DEFINITIONS.cpuTotal, width: "97px", unit: "ns", sums: true },
];

export const OpKernel: readonly Declared<Types.OpKernel>[] = [
  { id: "name", header: "Kernel", definition: DEFINITIONS.kernelName, width: "190px" },
  { id: "total_ns", header: "Total", definition: DEFINITIONS.totalTime, width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "%", definition: "Share of the kernel in the GPU time of what is selected.", width: "76px", unit: "percent" },
  { id: "tensor_core", header: "On TC", definition: DEFINITIONS.kernelTc, width: "80px", verdict: true, filter: "choice" },
  { id: "precision", header: "Precision", definition: DEFINITIONS.kernelPrecision, width: "80px", absent: ["tensor_core", "no"] },
  { id: "average_ns", header: "Mean", definition: DEFINITIONS.averageTime, width: "76px", unit: "ns" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", sums: true },
  { id: "family", header: "Family", definition: DEFINITIONS.kernelFamily, width: "110px" },
  { id: "bytes", header: "Bytes", definition: DEFINITIONS.bytes, width: "76px", unit: "bytes", sums: true, missing: "–" },
];

export const ModuleRow: readonly Declared<Types.ModuleRow>[] = [
  { id: "path", header: "Module", definition: DEFINITIONS.modulePath, width: "280px" },
  { id: "type", header: "Type", definition: DEFINITIONS.moduleType, width: "130px", missing: "–" },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.moduleGpu, width: "90px", unit: "ns", tasks: ["time", "tensor_cores"], sums: true, gpu: true },
  { id: "gpu_percent", header: "GPU %", definition: DEFINITIONS.moduleShare, width: "110px", unit: "percent", tasks: ["time"], bar: true, gpu: true },
  { id: "gpu_forward_ns", header: "Forward", definition: DEFINITIONS.moduleForward, width: "83px", unit: "ns", tasks: ["time"], sums: true, gpu: true, missing: "–" },
  { id: "gpu_backward_ns", header: "Backward", definition: DEFINITIONS.moduleBackward, width: "90px", unit: "ns", tasks: ["time"], sums: true, gpu: true, missing: "–" },
  { id: "gpu_own_ns", header: "Own", definition: DEFINITIONS.moduleOwn, width: "76px", unit: "ns", tasks: ["time"], sums: true, gpu: true },
  { id: "calls", header: "Calls", definition: DEFINITIONS.moduleCalls, width: "76px", unit: "count", tasks: ["time", "cpu"], sums: true, missing: "–" },
  { id: "eligible_ns", header: "TC eligible", definition: DEFINITIONS.moduleEligible, width: "111px", unit: "ns", tasks: ["tensor_cores"], sums: true, gpu: true },
  { id: "tc_ns", header: "On TC", definition: DEFINITIONS.moduleTc, width: "76px", unit: "ns", tasks: ["tensor_cores"], sums: true, gpu: true },
  { id: "utilization_percent", header: "TC %", definition: DEFINITIONS.moduleUtilization, width: "76px", unit: "percent", tasks: ["tensor_cores"], gpu: true, absent: ["eligible_ns", "0"] },
  { id: "tc_eligible_ops", header: "Eligible ops", definition: "Ops that Tensor Cores could run.", width: "118px", unit: "count", tasks: ["tensor_cores"], gpu: true },
  { id: "tc_using_ops", header: "Using TC", definition: "Ops of which a kernel ran on Tensor Cores.", width: "90px", unit: "count", tasks: ["tensor_cores"], gpu: true },
  { id: "kernel_calls", header: "Kernels", definition: DEFINITIONS.moduleKernels, width: "83px", unit: "count", tasks: ["time"], sums: true, gpu: true },
  { id: "cpu_ns", header: "CPU time", definition: DEFINITIONS.moduleCpu, width: "90px", unit: "ns", tasks: ["cpu"], sums: true },
  { id: "cpu_percent", header: "CPU %", definition: DEFINITIONS.moduleCpuShare, width: "110px", unit: "percent", tasks: ["cpu"], bar: true },
  { id: "cpu_forward_ns", header: "CPU forward", definition: DEFINITIONS.moduleForward, width: "111px", unit: "ns", tasks: ["cpu"], sums: true, missing: "–" },
  { id: "cpu_backward_ns", header: "CPU backward", definition: DEFINITIONS.moduleBackward, width: "118px", unit: "ns", tasks: ["cpu"], sums: true, missing: "–" },
  { id: "cpu_own_ns", header: "CPU own", definition: DEFINITIONS.moduleOwn, width: "83px", unit: "ns", tasks: ["cpu"], sums: true },
  { id: "gpu_min_ns", header: "GPU min", definition: DEFINITIONS.moduleMin, width: "83px", unit: "ns", tasks: ["time"], gpu: true },
  { id: "gpu_max_ns", header: "GPU max", definition: DEFINITIONS.moduleMax, width: "83px", unit: "ns", tasks: ["time"], gpu: true },
  { id: "gpu_sum_ns", header: "GPU sum", definition: DEFINITIONS.moduleGpuSum, width: "83px", unit: "ns", sums: true, gpu: true },
  { id: "cpu_min_ns", header: "CPU min", definition: DEFINITIONS.moduleMin, width: "83px", unit: "ns", tasks: ["cpu"] },
  { id: "cpu_max_ns", header: "CPU max", definition: DEFINITIONS.moduleMax, width: "83px", unit: "ns", tasks: ["cpu"] },
  { id: "op_calls", header: "Op calls", definition: DEFINITIONS.moduleOpCalls, width: "90px", unit: "count", tasks: ["cpu"], sums: true },
  { id: "ops", header: "Ops", definition: DEFINITIONS.moduleOps, width: "76px", unit: "count", tasks: ["cpu"] },
];

export const KernelRow: readonly Declared<Types.KernelRow>[] = [
  { id: "name", header: "Kernel", definition: DEFINITIONS.kernelName, width: "410px" },
  { id: "total_ns", header: "Total", definition: DEFINITIONS.totalTime, width: "76px", unit: "ns", tasks: ["time", "tensor_cores", "shapes"], sums: true },
  { id: "percent", header: "%", definition: "Share of the summed time of all kernels, copies and sets.", width: "110px", unit: "percent", tasks: ["time", "tensor_cores", "shapes"], bar: true },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", tasks: ["time", "tensor_cores", "shapes"], sums: true },
  { id: "average_ns", header: "Mean", definition: DEFINITIONS.averageTime, width: "76px", unit: "ns", tasks: ["time"] },
  { id: "tensor_core", header: "Tensor Cores", definition: DEFINITIONS.kernelTc, width: "112px", tasks: ["tensor_cores"], verdict: true, filter: "choice" },
  { id: "precision", header: "Precision", definition: DEFINITIONS.kernelPrecision, width: "100px", tasks: ["tensor_cores"], filter: "choice", absent: ["tensor_core", "no"] },
  { id: "family", header: "Family", definition: DEFINITIONS.kernelFamily, width: "130px", tasks: ["time", "tensor_cores"], filter: "choice" },
  { id: "occupancy_percent", header: "Occupancy", definition: DEFINITIONS.occupancy, width: "97px", unit: "percent", tasks: ["tensor_cores", "shapes"], absent: ["kind", "copy", "set"] },
  { id: "min_ns", header: "Min", definition: "Shortest call.", width: "76px", unit: "ns", tasks: ["time"] },
  { id: "max_ns", header: "Max", definition: DEFINITIONS.maxTime, width: "76px", unit: "ns", tasks: ["time"] },
  { id: "kind", header: "Kind", definition: DEFINITIONS.kernelKind, width: "104px", tasks: ["shapes"], filter: "choice" },
  { id: "grid", header: "Grid", definition: DEFINITIONS.grid, width: "110px", tasks: ["shapes"], missing: "–" },
  { id: "block", header: "Block", definition: DEFINITIONS.block, width: "100px", tasks: ["shapes"], missing: "–" },
  { id: "registers_per_thread", header: "Registers", definition: DEFINITIONS.registers, width: "97px", unit: "count", tasks: ["shapes"], missing: "–" },
  { id: "shared_memory_bytes", header: "Shared memory", definition: DEFINITIONS.sharedMemory, width: "125px", unit: "bytes", tasks: ["shapes"], missing: "–" },
  { id: "bytes", header: "Bytes", definition: DEFINITIONS.bytes, width: "76px", unit: "bytes", tasks: ["shapes"], sums: true, missing: "–" },
  { id: "rule", header: "Rule", definition: DEFINITIONS.kernelRule, width: "150px", filter: "choice" },
];

export const PaceRow: readonly Declared<Types.PaceRow>[] = [
  { id: "number", header: "Iteration", definition: "Number of the iteration, as the training counts them.", width: "97px", unit: "count" },
  { id: "gpu", header: "GPU", definition: "Index of the GPU.", width: "104px", filter: "choice" },
  { id: "pace", header: "Pace", definition: DEFINITIONS.pace, width: "104px", filter: "choice" },
  { id: "duration_ns", header: "Duration", definition: DEFINITIONS.iterations, width: "90px", unit: "ns" },
  { id: "idle_percent", header: "GPU idle", definition: "Share of the recorded iteration in which nothing ran on the GPU.", width: "90px", unit: "percent" },
  { id: "late_percent", header: "Launched late", definition: DEFINITIONS.launchedLate, width: "125px", unit: "percent" },
  { id: "slack_percent", header: "CPU not needed", definition: DEFINITIONS.cpuSlack, width: "132px", unit: "percent" },
  { id: "gaps", header: "Gaps", definition: "Idle gaps of the GPU in the iteration.", width: "76px", unit: "count" },
  { id: "longest_gap_ns", header: "Longest gap", definition: "The longest idle gap of the iteration.", width: "111px", unit: "ns" },
  { id: "idle_by_cause_ns", header: "Cause", definition: "The bucket of the account of a step that holds most of the idle time; the bar shows all.", width: "360px", filter: "choice" },
];

export const LaunchedKernel: readonly Declared<Types.LaunchedKernel>[] = [
  { id: "name", header: "Kernel", definition: DEFINITIONS.kernelName, width: "320px" },
  { id: "mean_delay_ns", header: "Mean delay", definition: DEFINITIONS.launchDelay, width: "104px", unit: "ns" },
  { id: "max_delay_ns", header: "Longest delay", definition: DEFINITIONS.launchDelay, width: "125px", unit: "ns" },
  { id: "mean_queue", header: "Mean queue", definition: DEFINITIONS.launchQueue, width: "104px", unit: "count" },
  { id: "max_queue", header: "Deepest queue", definition: DEFINITIONS.launchQueue, width: "125px", unit: "count" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", sums: true },
  { id: "mean_call_ns", header: "Launch call", definition: "Mean duration of the calls that launched it.", width: "111px", unit: "ns" },
  { id: "average_ns", header: "Kernel time", definition: DEFINITIONS.averageTime, width: "111px", unit: "ns" },
  { id: "short_percent", header: "Shorter than launch", definition: DEFINITIONS.launchShort, width: "167px", unit: "percent" },
  { id: "kind", header: "Kind", definition: DEFINITIONS.kernelKind, width: "104px", filter: "choice" },
];

export const SyncRow: readonly Declared<Types.SyncRow>[] = [
  { id: "call", header: "Call", definition: DEFINITIONS.syncCalls, width: "200px" },
  { id: "op", header: "Op", definition: DEFINITIONS.syncOp, width: "220px", missing: "none: Python" },
  { id: "time_ns", header: "Time", definition: "Time inside these calls, summed over the selected iterations.", width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "%", definition: "Share of the recorded iterations.", width: "110px", unit: "percent", bar: true },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", sums: true },
  { id: "average_ns", header: "Mean", definition: DEFINITIONS.averageTime, width: "76px", unit: "ns" },
  { id: "max_ns", header: "Max", definition: DEFINITIONS.maxTime, width: "76px", unit: "ns" },
  { id: "kind", header: "Kind", definition: DEFINITIONS.syncKind, width: "120px", filter: "choice" },
  { id: "role", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice" },
  { id: "inner_op", header: "Inside", definition: "The innermost op around the call.", width: "210px", missing: "–" },
];

export const GapRow: readonly Declared<Types.GapRow>[] = [
  { id: "kernel", header: "Ended by", definition: "The kernel, copy or set that ended the gap.", width: "260px", missing: "end of the iteration" },
  { id: "duration_ns", header: "Gap", definition: DEFINITIONS.gapDuration, width: "76px", unit: "ns" },
  { id: "percent", header: "%", definition: "Share of the recorded iteration.", width: "110px", unit: "percent", bar: true },
  { id: "number", header: "Iteration", definition: "Number of the iteration, as the training counts them.", width: "97px", unit: "count" },
  { id: "gpu", header: "GPU", definition: "Index of the GPU.", width: "104px", filter: "choice" },
  { id: "start_ns", header: "At", definition: "When the gap began, counted from the iteration's start.", width: "76px", unit: "ns" },
  { id: "cause", header: "Cause", definition: DEFINITIONS.gapCause, width: "240px", filter: "choice" },
  { id: "kind", header: "Next work", definition: DEFINITIONS.idleKind, width: "178px", filter: "choice" },
  { id: "op", header: "Op", definition: "The op that launched it.", width: "220px", missing: "–" },
];

export const ReasonTotal: readonly Declared<Types.ReasonTotal>[] = [
  { id: "label", header: "Reason", definition: "Why this kernel time is off the Tensor Cores.", width: "104px", missing: "–" },
  { id: "ops", header: "Ops", definition: "Ops for which it is the reason of most time.", width: "76px", unit: "count" },
  { id: "time_ns", header: "Time", definition: "Kernel time of eligible ops that is off the Tensor Cores for this reason.", width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "Share", definition: "Share of the kernel time of eligible ops.", width: "76px", unit: "percent" },
  { id: "saved_ns", header: "Should save", definition: DEFINITIONS.saving, width: "111px", unit: "ns", sums: true },
  { id: "at_most_ns", header: "Could save at most", definition: DEFINITIONS.couldSave, width: "160px", unit: "ns", sums: true },
  { id: "text", header: "Why", definition: "The reason, and what to do.", width: "104px" },
];

export const TensorCoreOp: readonly Declared<Types.TensorCoreOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "280px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", tasks: ["time", "tensor_cores", "shapes"], filter: "choice", missing: "–" },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.gpuTime, width: "90px", unit: "ns", tasks: ["time", "tensor_cores", "shapes"], sums: true },
  { id: "could_save_ns", header: "Could save", definition: DEFINITIONS.couldSave, width: "104px", unit: "ns", tasks: ["time", "tensor_cores"], sums: true },
  { id: "using_tc", header: "Using TC", definition: DEFINITIONS.usingTc, width: "104px", tasks: ["tensor_cores"], verdict: true, filter: "choice" },
  { id: "utilization_percent", header: "TC %", definition: DEFINITIONS.opUtilization, width: "76px", unit: "percent", tasks: ["time", "tensor_cores"] },
  { id: "precision", header: "Precision", definition: DEFINITIONS.precision, width: "104px", tasks: ["tensor_cores"], filter: "choice" },
  { id: "reasons", header: "Reason", definition: "Kind of the reason of most time.", width: "164px", tasks: ["tensor_cores"], filter: "choice", missing: "–" },
  { id: "reason", header: "Why not", definition: DEFINITIONS.reason, width: "400px", tasks: ["tensor_cores"], missing: "–" },
  { id: "possible_precisions", header: "Could run in", definition: "Precisions in which this GPU's Tensor Cores could compute the op, as it is or after a switch to TF32 or mixed precision.", width: "130px", tasks: ["shapes"] },
  { id: "could_save", header: "Saving is", definition: "What stands under Could save: an estimate, a bound (at most), or both.", width: "104px", filter: "choice" },
  { id: "tc_ns", header: "On TC", definition: DEFINITIONS.tcTime, width: "76px", unit: "ns", tasks: ["time"], sums: true },
  { id: "non_tc_ns", header: "Off TC", definition: DEFINITIONS.nonTcTime, width: "76px", unit: "ns", tasks: ["time"], sums: true },
  { id: "unknown_ns", header: "Unknown", definition: DEFINITIONS.unknownTime, width: "83px", unit: "ns", tasks: ["time"], sums: true },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", tasks: ["time"], sums: true },
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "180px", tasks: ["time"] },
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, width: "220px", tasks: ["shapes"] },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, width: "130px", tasks: ["shapes"] },
  { id: "tc_kernels", header: "TC kernels", definition: "Kernels of the op that run on Tensor Cores.", width: "220px", missing: "–" },
  { id: "non_tc_kernels", header: "Other kernels", definition: "Kernels of the op that do not run on Tensor Cores.", width: "220px", missing: "–" },
  { id: "unknown_kernels", header: "Unknown kernels", definition: "Kernels of the op whose Tensor Core use is unknown.", width: "220px", missing: "–" },
];

export const TensorCoreKernel: readonly Declared<Types.TensorCoreKernel>[] = [
  { id: "name", header: "Kernel", definition: DEFINITIONS.kernelName, width: "320px" },
  { id: "total_ns", header: "Total", definition: DEFINITIONS.totalTime, width: "76px", unit: "ns", sums: true },
  { id: "percent", header: "%", definition: "Share of the kernel time of eligible ops.", width: "76px", unit: "percent" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", sums: true },
  { id: "tensor_core", header: "Tensor Cores", definition: DEFINITIONS.kernelTc, width: "118px", verdict: true, filter: "choice" },
  { id: "precision", header: "Precision", definition: DEFINITIONS.kernelPrecision, width: "104px", filter: "choice", missing: "–" },
  { id: "family", header: "Family", definition: DEFINITIONS.kernelFamily, width: "120px", filter: "choice" },
  { id: "measured_percent", header: "Busy, measured", definition: DEFINITIONS.measuredTensorActivity, width: "132px", unit: "percent", missing: "not sampled" },
  { id: "rule", header: "Rule", definition: DEFINITIONS.kernelRule, width: "150px", filter: "choice" },
];

export const IneligibleWork: readonly Declared<Types.IneligibleWork>[] = [
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "104px" },
  { id: "ops", header: "Ops", definition: "Ops of this type.", width: "76px", unit: "count" },
  { id: "time_ns", header: "Time", definition: "Kernel time of these ops.", width: "76px", unit: "ns", sums: true },
  { id: "text", header: "Why", definition: "Why Tensor Cores cannot run them.", width: "104px" },
];

export const RooflineOp: readonly Declared<Types.RooflineOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "270px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", tasks: ["time", "tensor_cores", "shapes"], filter: "choice", missing: "–" },
  { id: "gpu_ns", header: "GPU time", definition: DEFINITIONS.matrixTime, width: "90px", unit: "ns", tasks: ["time", "tensor_cores", "shapes"], sums: true },
  { id: "percent_of_ceiling", header: "% of roof", definition: DEFINITIONS.roofPercent, width: "97px", unit: "percent", tasks: ["time", "tensor_cores", "shapes"] },
  { id: "flops_per_second", header: "Rate", definition: DEFINITIONS.flopRate, width: "110px", unit: "flops_per_second", tasks: ["time", "tensor_cores", "shapes"] },
  { id: "ceiling_flops_per_second", header: "Roof", definition: DEFINITIONS.roof, width: "110px", unit: "flops_per_second", tasks: ["time"] },
  { id: "precision", header: "Ran in", definition: DEFINITIONS.ranIn, width: "104px", tasks: ["tensor_cores"], filter: "choice" },
  { id: "bound", header: "Bound by", definition: DEFINITIONS.bound, width: "104px", tasks: ["time"], filter: "choice" },
  { id: "measured", header: "Counted by", definition: DEFINITIONS.rooflineMeasured, width: "104px", filter: "choice" },
  { id: "possible_precision", header: "Could run in", definition: DEFINITIONS.couldRunIn, width: "118px", tasks: ["tensor_cores"], filter: "choice" },
  { id: "percent_of_possible", header: "% of that roof", definition: DEFINITIONS.possiblePercent, width: "132px", unit: "percent", tasks: ["tensor_cores"] },
  { id: "flops", header: "FLOPs", definition: DEFINITIONS.flops, width: "110px", unit: "flops", tasks: ["time"], sums: true },
  { id: "bytes", header: "Bytes", definition: "Least bytes to move: every input read once, every output written once.", width: "76px", unit: "bytes", tasks: ["time"], sums: true },
  { id: "flops_per_byte", header: "FLOPs/byte", definition: DEFINITIONS.intensity, width: "104px", unit: "count", tasks: ["shapes"] },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, width: "76px", unit: "count", tasks: ["time"], sums: true },
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "170px", tasks: ["tensor_cores"] },
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, width: "220px", tasks: ["shapes"] },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, width: "130px", tasks: ["shapes"] },
];

export const MemoryCategory: readonly Declared<Types.MemoryCategory>[] = [
  { id: "label", header: "Category", definition: DEFINITIONS.memoryCategory, width: "150px" },
  { id: "bytes", header: "At the peak", definition: DEFINITIONS.memoryAtPeak, width: "111px", unit: "bytes" },
  { id: "percent", header: "%", definition: DEFINITIONS.memoryPercent, width: "76px", unit: "percent", missing: "–" },
  { id: "own_peak_bytes", header: "Own peak", definition: DEFINITIONS.memoryOwnPeak, width: "90px", unit: "bytes" },
];

export const MemoryIteration: readonly Declared<Types.MemoryIteration>[] = [
  { id: "number", header: "Iteration", definition: "Its number, as the training counts it; select one to see only it.", width: "97px", unit: "count" },
  { id: "peak_allocated_bytes", header: "Peak allocated", definition: DEFINITIONS.memoryPeakAllocated, width: "132px", unit: "bytes" },
  { id: "peak_reserved_bytes", header: "Peak reserved", definition: DEFINITIONS.memoryPeakReserved, width: "125px", unit: "bytes" },
  { id: "growth_bytes", header: "Growth", definition: DEFINITIONS.memoryGrowth, width: "76px", unit: "bytes" },
  { id: "allocations", header: "Allocations", definition: "Allocations that it made.", width: "111px", unit: "count" },
];

export const MemoryGroup: readonly Declared<Types.MemoryGroup>[] = [
  { id: "name", header: "Module", definition: DEFINITIONS.memoryModule, width: "190px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice", missing: "–" },
  { id: "bytes", header: "At the peak", definition: DEFINITIONS.memoryAtPeak, width: "111px", unit: "bytes" },
  { id: "percent", header: "%", definition: DEFINITIONS.memoryPercent, width: "76px", unit: "percent", missing: "–" },
  { id: "allocations", header: "Alive", definition: "Allocations alive at the peak.", width: "76px", unit: "count", missing: "–" },
  { id: "own_peak_bytes", header: "Own peak", definition: DEFINITIONS.memoryOwnPeak, width: "90px", unit: "bytes" },
];

export const MemoryAllocation: readonly Declared<Types.MemoryAllocation>[] = [
  { id: "op", header: "Allocated by", definition: "The outermost op that allocated it.", width: "280px" },
  { id: "bytes", header: "Size", definition: "Allocated bytes: on a GPU rounded up to 512.", width: "76px", unit: "bytes" },
  { id: "percent", header: "%", definition: DEFINITIONS.memoryPercent, width: "76px", unit: "percent", missing: "–" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice", missing: "–" },
  { id: "category", header: "Category", definition: DEFINITIONS.memoryCategory, width: "150px", filter: "choice" },
  { id: "iteration", header: "Iteration", definition: "The iteration that allocated it.", width: "97px", unit: "count", missing: "outside" },
  { id: "freed", header: "Freed in", definition: "The iteration that freed it.", width: "150px", missing: "not in the recording" },
  { id: "lifetime_ns", header: "Lived", definition: "Time from the allocation to the free, on the CPU.", width: "76px", unit: "ns", missing: "–" },
  { id: "module", header: "Module", definition: DEFINITIONS.memoryModule, width: "190px", missing: "–" },
];

export const PlanRow: readonly Declared<Types.PlanRow>[] = [
  { id: "gpu", header: "GPU", definition: DEFINITIONS.planGpu, width: "150px" },
  { id: "batch_size", header: "Batch", definition: DEFINITIONS.planBatch, width: "76px", unit: "count" },
  { id: "peak_allocated_mb", header: "Peak allocated", definition: DEFINITIONS.planPeakAllocated, width: "132px", unit: "bytes", scale: 1000000.0 },
  { id: "peak_reserved_mb", header: "Peak reserved", definition: DEFINITIONS.planPeakReserved, width: "125px", unit: "bytes", scale: 1000000.0 },
  { id: "smallest_limit_mb", header: "Smallest limit", definition: DEFINITIONS.planSmallestLimit, width: "132px", unit: "bytes", scale: 1000000.0 },
  { id: "capacity_mb", header: "Memory", definition: DEFINITIONS.planCapacity, width: "76px", unit: "bytes", scale: 1000000.0 },
  { id: "verdict", header: "Fits", definition: DEFINITIONS.planVerdict, width: "120px" },
  { id: "largest_batch", header: "Largest batch", definition: DEFINITIONS.planLargestBatch, width: "125px", unit: "count" },
  { id: "step_ms", header: "Step", definition: DEFINITIONS.planStep, width: "76px", unit: "ns", scale: 1000000.0 },
  { id: "samples_per_second", header: "Samples/s", definition: "The batch size over the step time.", width: "97px", unit: "count" },
];

export const PlanFigure: readonly Declared<Types.PlanFigure>[] = [
  { id: "name", header: "Memory", definition: DEFINITIONS.planInterval, width: "130px" },
  { id: "mb", header: "Likely", definition: DEFINITIONS.planInterval, width: "76px", unit: "bytes", scale: 1000000.0 },
  { id: "low_mb", header: "At least", definition: DEFINITIONS.planInterval, width: "90px", unit: "bytes", scale: 1000000.0 },
  { id: "high_mb", header: "At most", definition: DEFINITIONS.planInterval, width: "83px", unit: "bytes", scale: 1000000.0 },
];

export const CheckpointRow: readonly Declared<Types.CheckpointRow>[] = [
  { id: "modules", header: "Checkpointed", definition: DEFINITIONS.planCheckpoints, width: "220px", missing: "none" },
  { id: "peak_allocated_mb", header: "Peak allocated", definition: DEFINITIONS.planPeakAllocated, width: "132px", unit: "bytes", scale: 1000000.0 },
  { id: "peak_reserved_mb", header: "Peak reserved", definition: DEFINITIONS.planPeakReserved, width: "125px", unit: "bytes", scale: 1000000.0 },
  { id: "step_ms", header: "Step", definition: DEFINITIONS.planStep, width: "76px", unit: "ns", scale: 1000000.0 },
];

export const ShardRow: readonly Declared<Types.ShardRow>[] = [
  { id: "shard", header: "Shared by", definition: DEFINITIONS.planShard, width: "104px" },
  { id: "peak_allocated_mb", header: "Peak allocated", definition: DEFINITIONS.planPeakAllocated, width: "132px", unit: "bytes", scale: 1000000.0 },
  { id: "peak_reserved_mb", header: "Peak reserved", definition: DEFINITIONS.planPeakReserved, width: "125px", unit: "bytes", scale: 1000000.0 },
  { id: "verdict", header: "Fits", definition: DEFINITIONS.planVerdict, width: "128px" },
];

export const StageRow: readonly Declared<Types.StageRow>[] = [
  { id: "modules", header: "Modules", definition: DEFINITIONS.planStages, width: "280px" },
  { id: "peak_allocated_mb", header: "Peak allocated", definition: DEFINITIONS.planPeakAllocated, width: "132px", unit: "bytes", scale: 1000000.0 },
  { id: "peak_reserved_mb", header: "Peak reserved", definition: DEFINITIONS.planPeakReserved, width: "125px", unit: "bytes", scale: 1000000.0 },
];

export const JobDelay: readonly Declared<Types.JobDelay>[] = [
  { id: "rank", header: "Rank", definition: "The rank where the delay begins.", width: "76px", unit: "count" },
  { id: "host", header: "Host", definition: "The rank's host, as its recording names it.", width: "120px" },
  { id: "owed_ns", header: "Owed", definition: DEFINITIONS.jobOwed, width: "76px", unit: "ns" },
  { id: "winnable_ns", header: "Winnable", definition: DEFINITIONS.jobWinnable, width: "110px", unit: "ns", bar: true },
  { id: "cause", header: "Cause", definition: "What makes it late.", width: "140px" },
  { id: "significant", header: "Significant", definition: DEFINITIONS.jobSignificant, width: "130px" },
  { id: "why", header: "Why", definition: "The figures that the cause rests on.", width: "460px" },
];

export const JobWhatIf: readonly Declared<Types.JobWhatIf>[] = [
  { id: "change", header: "If", definition: "What is repaired, alone.", width: "300px" },
  { id: "step_ns", header: "Step", definition: "The job's step then, by replaying all ranks.", width: "76px", unit: "ns" },
  { id: "low_ns", header: "At least", definition: "Lower end of the interval.", width: "90px", unit: "ns" },
  { id: "high_ns", header: "At most", definition: "Upper end of the interval.", width: "83px", unit: "ns" },
  { id: "saved_percent", header: "Saved", definition: "Part of the step that it saves.", width: "110px", unit: "percent", bar: true },
];

export const JobCollective: readonly Declared<Types.JobCollective>[] = [
  { id: "operation", header: "Operation", definition: "What the calls do.", width: "140px", filter: "choice" },
  { id: "dimension", header: "Dimension", definition: "Parallel dimension of the group.", width: "104px", filter: "choice", missing: "–" },
  { id: "size", header: "Size", definition: "Class of message sizes.", width: "110px", filter: "choice", missing: "–" },
  { id: "module", header: "Module", definition: "Module or FSDP unit that the calls belong to.", width: "180px", missing: "–" },
  { id: "calls_per_step", header: "Calls", definition: "Calls of a rank per step.", width: "76px", unit: "count_per_step" },
  { id: "transfer_ns", header: "Transfer", definition: DEFINITIONS.jobTransfer, width: "90px", unit: "ns" },
  { id: "waiting_ns", header: "Waiting", definition: DEFINITIONS.jobWaiting, width: "83px", unit: "ns" },
  { id: "exposed_ns", header: "Exposed", definition: "Time in which nothing else ran on the GPU, mean of the ranks.", width: "110px", unit: "ns", bar: true },
  { id: "bus_bytes_per_second", header: "Bus bandwidth", definition: DEFINITIONS.jobBus, width: "125px", unit: "bytes_per_second" },
  { id: "attainable_bytes_per_second", header: "Attainable", definition: "The best bus bandwidth of such calls in this job, or what the link allows.", width: "104px", unit: "bytes_per_second" },
  { id: "verdict", header: "Bound by", definition: DEFINITIONS.jobVerdict, width: "130px", filter: "choice" },
  { id: "hiding_bytes_per_second", header: "To hide it", definition: DEFINITIONS.jobHiding, width: "104px", unit: "bytes_per_second" },
];

export const JobPart: readonly Declared<Types.JobPart>[] = [
  { id: "part", header: "Part", definition: "What the GPU does, mean of all ranks.", width: "180px" },
  { id: "base_ns", header: "Base", definition: "In the other job.", width: "76px", unit: "ns" },
  { id: "candidate_ns", header: "This job", definition: "In the job of this page.", width: "90px", unit: "ns" },
  { id: "difference_ns", header: "Change", definition: "The parts add up to the step.", width: "76px", unit: "ns", signed: true },
];

export const JobDelayChange: readonly Declared<Types.JobDelayChange>[] = [
  { id: "what", header: "Delay", definition: DEFINITIONS.jobDelayChange, width: "80px" },
  { id: "rank", header: "Rank", definition: "Where it begins.", width: "76px", unit: "count" },
  { id: "cause", header: "Cause", definition: "What makes it late.", width: "140px" },
  { id: "base_winnable_ns", header: "Base", definition: DEFINITIONS.jobWinnable, width: "76px", unit: "ns", missing: "–" },
  { id: "winnable_ns", header: "This job", definition: DEFINITIONS.jobWinnable, width: "90px", unit: "ns", missing: "–" },
  { id: "why", header: "Why", definition: "The figures that the cause rests on.", width: "400px" },
];

export const JobRankChange: readonly Declared<Types.JobRankChange>[] = [
  { id: "rank", header: "Rank", definition: "Number of the rank in this job.", width: "76px", unit: "count" },
  { id: "base_ranks", header: "Against", definition: DEFINITIONS.jobBaseRanks, width: "104px" },
  { id: "compute_ns", header: "Compute", definition: DEFINITIONS.jobCompute, width: "83px", unit: "ns", signed: true },
  { id: "transfer_ns", header: "Transfer", definition: DEFINITIONS.jobTransfer, width: "90px", unit: "ns", signed: true },
  { id: "waiting_ns", header: "Waiting", definition: DEFINITIONS.jobWaiting, width: "83px", unit: "ns", signed: true },
  { id: "bubble_ns", header: "Bubble", definition: DEFINITIONS.jobBubble, width: "76px", unit: "ns", signed: true },
  { id: "host_ns", header: "Host", definition: DEFINITIONS.jobHost, width: "76px", unit: "ns", signed: true },
  { id: "step_ns", header: "Step", definition: DEFINITIONS.jobStep, width: "76px", unit: "ns", signed: true },
];

export const JobCollectiveChange: readonly Declared<Types.JobCollectiveChange>[] = [
  { id: "operation", header: "Operation", definition: "What the calls do.", width: "140px", filter: "choice" },
  { id: "dimension", header: "Dimension", definition: "Parallel dimension of the group.", width: "104px", filter: "choice", missing: "–" },
  { id: "size", header: "Size", definition: "Class of message sizes.", width: "110px", filter: "choice", missing: "–" },
  { id: "module", header: "Module", definition: "Module or FSDP unit that the calls belong to.", width: "180px", missing: "–" },
  { id: "base_calls", header: "Base calls", definition: "Calls of a rank per step in the other job.", width: "104px", unit: "count_per_step", missing: "–" },
  { id: "calls", header: "Calls", definition: "Calls of a rank per step in this job.", width: "76px", unit: "count_per_step", missing: "–" },
  { id: "base_transfer_ns", header: "Base transfer", definition: DEFINITIONS.jobTransfer, width: "125px", unit: "ns", missing: "–" },
  { id: "transfer_ns", header: "Transfer", definition: DEFINITIONS.jobTransfer, width: "90px", unit: "ns", missing: "–" },
  { id: "base_waiting_ns", header: "Base waiting", definition: DEFINITIONS.jobWaiting, width: "118px", unit: "ns", missing: "–" },
  { id: "waiting_ns", header: "Waiting", definition: DEFINITIONS.jobWaiting, width: "83px", unit: "ns", missing: "–" },
  { id: "base_exposed_ns", header: "Base exposed", definition: "Time in which nothing else ran on the GPU, in the other job.", width: "118px", unit: "ns", missing: "–" },
  { id: "exposed_ns", header: "Exposed", definition: "Time in which nothing else ran on the GPU, in this job.", width: "83px", unit: "ns", missing: "–" },
  { id: "difference_ns", header: "Change", definition: "Change of the time in which nothing else ran.", width: "76px", unit: "ns", signed: true },
];

export const ScaledRow: readonly Declared<Types.ScaledRow>[] = [
  { id: "job", header: "Job", definition: "The run that is a job.", width: "180px" },
  { id: "gpus", header: "GPUs", definition: "How many the job uses.", width: "76px", unit: "count" },
  { id: "step_ns", header: "Step", definition: DEFINITIONS.jobStep, width: "76px", unit: "ns" },
  { id: "work", header: "Work", definition: DEFINITIONS.jobWork, width: "76px", unit: "ratio" },
  { id: "throughput", header: "Speed", definition: "Work per time over that of the smallest job.", width: "76px", unit: "ratio" },
  { id: "efficiency_percent", header: "Efficiency", definition: DEFINITIONS.jobScaling, width: "110px", unit: "percent", bar: true },
  { id: "compute", header: "× compute", definition: "Work per time in which a GPU computes.", width: "97px", unit: "ratio" },
  { id: "host", header: "× host", definition: "What GPUs that idle for the host change of it.", width: "76px", unit: "ratio" },
  { id: "transfer", header: "× transfer", definition: "What exposed transfers change of it.", width: "104px", unit: "ratio" },
  { id: "waiting", header: "× waiting", definition: "What waiting for other ranks changes of it.", width: "97px", unit: "ratio" },
  { id: "bubble", header: "× bubble", definition: "What the pipeline's bubble changes of it.", width: "90px", unit: "ratio" },
  { id: "flops_utilization_percent", header: "FLOPs utilization", definition: DEFINITIONS.jobFlops, width: "153px", unit: "percent" },
];

export const EnergyChoice: readonly Declared<Types.EnergyChoice>[] = [
  { id: "precision", header: "Precision", definition: "What the step computes in; by autocast where it says so.", width: "150px" },
  { id: "batch_size", header: "Batch", definition: DEFINITIONS.planBatch, width: "76px", unit: "count" },
  { id: "step_ms", header: "Step", definition: DEFINITIONS.planStep, width: "76px", unit: "ns", scale: 1000000.0 },
  { id: "joules_per_step", header: "Energy", definition: DEFINITIONS.energyChoice, width: "76px", unit: "joules" },
  { id: "low_joules", header: "At least", definition: DEFINITIONS.energyInterval, width: "90px", unit: "joules" },
  { id: "high_joules", header: "At most", definition: DEFINITIONS.energyInterval, width: "83px", unit: "joules" },
  { id: "joules_per_sample", header: "Energy/sample", definition: DEFINITIONS.joulesPerSample, width: "125px", unit: "joules" },
  { id: "saved_percent", header: "Saved", definition: "Less energy per sample than as recorded; below 0 it is more.", width: "76px", unit: "percent" },
];

export const EnergyPart: readonly Declared<Types.EnergyPart>[] = [
  { id: "kind", header: "Work", definition: DEFINITIONS.energyKind, width: "220px" },
  { id: "joules", header: "Energy", definition: DEFINITIONS.energyPart, width: "76px", unit: "joules" },
  { id: "percent", header: "Share", definition: DEFINITIONS.energyShare, width: "76px", unit: "percent" },
];

export const EnergyModule: readonly Declared<Types.EnergyModule>[] = [
  { id: "path", header: "Module", definition: DEFINITIONS.modulePath, width: "220px", missing: "whole model" },
  { id: "joules", header: "Energy above rest", definition: DEFINITIONS.energyModule, width: "153px", unit: "joules" },
  { id: "percent", header: "Share", definition: DEFINITIONS.energyShare, width: "76px", unit: "percent" },
];

export const EnergyOp: readonly Declared<Types.EnergyOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "220px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice", missing: "–" },
  { id: "joules", header: "Energy above rest", definition: DEFINITIONS.energyPart, width: "153px", unit: "joules" },
  { id: "percent", header: "Share", definition: DEFINITIONS.energyShare, width: "76px", unit: "percent" },
  { id: "watts", header: "Power", definition: "Its energy above rest over the time of its kernels, copies and sets.", width: "76px", unit: "watts" },
];

export const ForecastOp: readonly Declared<Types.ForecastOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "260px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice", missing: "–" },
  { id: "measured_ms", header: "Now", definition: "Kernel time per iteration, as recorded.", width: "76px", unit: "ns", scale: 1000000.0 },
  { id: "predicted_ms", header: "Forecast", definition: "Kernel time per iteration in the new precision, its casts not counted.", width: "90px", unit: "ns", scale: 1000000.0 },
  { id: "speedup", header: "Times as fast", definition: "Kernel time now over the forecast, without casts.", width: "125px", unit: "ratio", missing: "–" },
  { id: "casts_ms", header: "Casts", definition: DEFINITIONS.forecastCasts, width: "76px", unit: "ns", scale: 1000000.0, absent: ["casts_ms", "0", "0.0"] },
  { id: "precision", header: "Would run in", definition: DEFINITIONS.forecastPrecision, width: "118px", filter: "choice", missing: "as now" },
];

export const TriedRow: readonly Declared<Types.TriedRow>[] = [
  { id: "remedy", header: "Remedy", definition: DEFINITIONS.triedRemedy, width: "260px" },
  { id: "before_ns", header: "Before", definition: "A step of the unchanged script, in the blocks between which the remedy's were run.", width: "76px", unit: "ns" },
  { id: "after_ns", header: "After", definition: DEFINITIONS.triedAfter, width: "76px", unit: "ns" },
  { id: "gain_percent", header: "Gain", definition: "Share of the step's time that the remedy saves; below 0 the step takes longer.", width: "76px", unit: "percent" },
  { id: "low_percent", header: "At least", definition: DEFINITIONS.triedInterval, width: "90px", unit: "percent" },
  { id: "high_percent", header: "At most", definition: DEFINITIONS.triedInterval, width: "83px", unit: "percent" },
  { id: "forecast_percent", header: "Forecast", definition: "What the advice expected from the baseline's recording alone.", width: "90px", unit: "percent" },
  { id: "memory_bytes", header: "Memory", definition: "The most that tensors held on the GPU.", width: "76px", unit: "bytes" },
  { id: "joules", header: "Energy", definition: "Energy of a step by the GPU's own counter.", width: "76px", unit: "joules" },
  { id: "start_s", header: "Start", definition: "From the start of the process to its first timed step, compilation included.", width: "76px", unit: "ns", scale: 1000000000.0 },
  { id: "verdict", header: "Training", definition: DEFINITIONS.triedVerdict, width: "170px" },
];

export const NotTriedRow: readonly Declared<Types.NotTriedRow>[] = [
  { id: "remedy", header: "Remedy", definition: DEFINITIONS.triedRemedy, width: "260px" },
  { id: "why", header: "Why", definition: "Why there is no figure: it does not fit this training, changed nothing, or failed.", width: "420px" },
];

export const CompareBucket: readonly Declared<Types.CompareBucket>[] = [
  { id: "label", header: "Where the step goes", definition: DEFINITIONS.waterfall, width: "180px" },
  { id: "base_ns", header: "Base", definition: DEFINITIONS.perIteration, width: "76px", unit: "ns" },
  { id: "candidate_ns", header: "Candidate", definition: DEFINITIONS.perIteration, width: "97px", unit: "ns" },
  { id: "difference_ns", header: "Change", definition: DEFINITIONS.difference, width: "76px", unit: "ns", signed: true },
  { id: "low_ms", header: "Change, 95 % from", definition: DEFINITIONS.noise, width: "153px", unit: "ns", scale: 1000000.0 },
  { id: "high_ms", header: "Change, 95 % to", definition: DEFINITIONS.noise, width: "139px", unit: "ns", scale: 1000000.0 },
  { id: "noise", header: "Noise", definition: DEFINITIONS.noise, width: "104px" },
];

export const CompareKernelFamily: readonly Declared<Types.CompareKernelFamily>[] = [
  { id: "family", header: "Family", definition: DEFINITIONS.kernelFamily, width: "180px" },
  { id: "a_ns", header: "Base", definition: DEFINITIONS.perIteration, width: "76px", unit: "ns" },
  { id: "b_ns", header: "Candidate", definition: DEFINITIONS.perIteration, width: "97px", unit: "ns" },
  { id: "a_calls", header: "Base calls", definition: "Kernels per iteration in the base.", width: "104px", unit: "count" },
  { id: "b_calls", header: "Cand. calls", definition: "Kernels per iteration in the candidate.", width: "111px", unit: "count" },
  { id: "a_tensor_core_ns", header: "Base on TC", definition: "Kernel time on Tensor Cores per iteration, in the base.", width: "104px", unit: "ns" },
  { id: "b_tensor_core_ns", header: "Cand. on TC", definition: "Kernel time on Tensor Cores per iteration, in the candidate.", width: "111px", unit: "ns" },
];

export const CompareOp: readonly Declared<Types.CompareOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "280px" },
  { id: "role", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice" },
  { id: "a_ns", header: "Base", definition: DEFINITIONS.perIteration, width: "76px", unit: "ns", missing: "not in run" },
  { id: "b_ns", header: "Candidate", definition: DEFINITIONS.perIteration, width: "97px", unit: "ns", missing: "not in run" },
  { id: "difference_ns", header: "Difference", definition: DEFINITIONS.difference, width: "104px", unit: "ns" },
  { id: "speedup", header: "Speedup", definition: DEFINITIONS.speedup, width: "83px", unit: "ratio", missing: "–" },
  { id: "change_percent", header: "Of change", definition: DEFINITIONS.changeShare, width: "97px", unit: "percent", missing: "–" },
  { id: "a_using_tc", header: "Base TC", definition: "Whether the op uses Tensor Cores in the base.", width: "104px", verdict: true, filter: "choice" },
  { id: "b_using_tc", header: "Cand. TC", definition: "Whether the op uses Tensor Cores in the candidate.", width: "104px", verdict: true, filter: "choice" },
  { id: "a_precision", header: "Base precision", definition: DEFINITIONS.precision, width: "132px", filter: "choice", missing: "–" },
  { id: "b_precision", header: "Cand. precision", definition: DEFINITIONS.precision, width: "139px", filter: "choice", missing: "–" },
  { id: "a_kernels", header: "Base kernels", definition: "Kernels per iteration in the base.", width: "118px", unit: "count", missing: "–" },
  { id: "b_kernels", header: "Cand. kernels", definition: "Kernels per iteration in the candidate.", width: "125px", unit: "count", missing: "–" },
  { id: "a_roof_percent", header: "Base roof", definition: DEFINITIONS.ofRoof, width: "97px", unit: "percent", missing: "–" },
  { id: "b_roof_percent", header: "Cand. roof", definition: DEFINITIONS.ofRoof, width: "104px", unit: "percent", missing: "–" },
  { id: "reason", header: "Match", definition: "Why the op is in one run only, or how its partner was found.", width: "190px", filter: "choice" },
  { id: "op_type", header: "Op type", definition: DEFINITIONS.opType, width: "190px" },
  { id: "module", header: "Module", definition: DEFINITIONS.module, width: "180px", missing: "–" },
];

export const ForecastCheckOp: readonly Declared<Types.ForecastCheckOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, width: "250px" },
  { id: "direction", header: "Pass", definition: DEFINITIONS.pass, width: "104px", filter: "choice", missing: "–" },
  { id: "before_ms", header: "Base", definition: "Kernel time per iteration in the base.", width: "76px", unit: "ns", scale: 1000000.0 },
  { id: "predicted_ms", header: "Forecast", definition: "Kernel time per iteration as forecast, without casts.", width: "90px", unit: "ns", scale: 1000000.0 },
  { id: "measured_ms", header: "Measured", definition: "Kernel time per iteration in the candidate, without casts.", width: "90px", unit: "ns", scale: 1000000.0, missing: "not in run" },
  { id: "error_ms", header: "Error", definition: DEFINITIONS.promiseError, width: "76px", unit: "ns", scale: 1000000.0, signed: true, missing: "–" },
  { id: "error_percent", header: "Error, %", definition: DEFINITIONS.promiseError, width: "90px", unit: "percent", missing: "–" },
  { id: "precision", header: "Forecast in", definition: DEFINITIONS.forecastPrecision, width: "111px", filter: "choice", missing: "as in base" },
];

export const RunRow: readonly Declared<Types.RunRow>[] = [
  { id: "ref", header: "Run", definition: "The directory of the run, below the log directory.", width: "230px" },
  { id: "model", header: "Model", definition: DEFINITIONS.runModel, width: "170px", filter: "choice" },
  { id: "precision", header: "Precision", definition: DEFINITIONS.runPrecision, width: "120px", filter: "choice" },
  { id: "batch_size", header: "Batch", definition: "Samples in a batch.", width: "76px", unit: "count" },
  { id: "step_ns", header: "Step time", definition: DEFINITIONS.runStep, width: "97px", unit: "ns" },
  { id: "speedup", header: "Speedup", definition: DEFINITIONS.runSpeedup, width: "83px", unit: "ratio", missing: "–" },
  { id: "change", header: "95 %", definition: DEFINITIONS.runNoise, width: "180px", filter: "choice", missing: "–" },
  { id: "base", header: "Base", definition: DEFINITIONS.runBase, width: "190px", missing: "none" },
  { id: "changes", header: "Differs in", definition: DEFINITIONS.runChanges, width: "200px", missing: "–" },
  { id: "samples_per_second", header: "Samples/s", definition: DEFINITIONS.samples, width: "97px", unit: "per_second" },
  { id: "recorded_ns", header: "Recorded step", definition: DEFINITIONS.runRecorded, width: "125px", unit: "ns" },
  { id: "step_words", header: "Step is", definition: DEFINITIONS.runSource, width: "170px", filter: "choice" },
  { id: "gpu_utilization", header: "GPU util.", definition: DEFINITIONS.gpuUtilization, width: "97px", unit: "percent" },
  { id: "tensor_core_utilization", header: "TC util.", definition: DEFINITIONS.tcUtilization, width: "90px", unit: "percent" },
  { id: "tensor_core_share", header: "Kernels on TC", definition: "Share of the kernel time that Tensor Core kernels take.", width: "125px", unit: "percent" },
  { id: "peak_memory_bytes", header: "Peak memory", definition: DEFINITIONS.runMemory, width: "111px", unit: "bytes" },
  { id: "joules_per_step", header: "Energy", definition: DEFINITIONS.runJoules, width: "76px", unit: "joules" },
  { id: "joules_per_sample", header: "Energy/sample", definition: DEFINITIONS.runJoulesPerSample, width: "125px", unit: "joules" },
  { id: "flops", header: "FLOPs/step", definition: DEFINITIONS.runFlops, width: "110px", unit: "flops" },
  { id: "launches", header: "Launches", definition: "Kernels, copies and sets launched per step.", width: "90px", unit: "count" },
  { id: "advice", header: "First advice", definition: "The finding with the largest expected saving.", width: "230px", filter: "choice", missing: "–" },
  { id: "workers", header: "Workers", definition: "Worker processes of the DataLoader.", width: "83px", unit: "count" },
  { id: "gpu", header: "GPU", definition: "The GPU, or the CPU where none was used.", width: "150px", filter: "choice" },
];

export const CompareKernel: readonly Declared<Types.CompareKernel>[] = [
  { id: "name", header: "Kernel", definition: "What ran on the GPU; casts are marked.", width: "240px" },
  { id: "ns", header: "Time", definition: "Time per iteration.", width: "76px", unit: "ns" },
  { id: "calls", header: "Calls", definition: "Launches per iteration.", width: "76px", unit: "count" },
  { id: "uses_tc", header: "Tensor Cores", definition: DEFINITIONS.kernelTc, width: "118px", verdict: true, filter: "choice" },
  { id: "precision", header: "Precision", definition: DEFINITIONS.kernelPrecision, width: "104px", missing: "–" },
];
