// Generated from the routes in tb_dlprof_plugin/web/routes.py by `make generate`.
// Do not edit. What the routes answer: one interface per struct, field for field.

export type Bound = "compute" | "memory" | "unknown";

export type Change = "faster" | "slower" | "within noise" | "unknown";

export type Confidence = "high" | "medium" | "low";

export type CouldSave = "estimate" | "at most" | "estimate and at most" | "nothing" | "unknown";

export type Direction = "forward" | "backward" | "";

export type EventKind = "forward" | "backward" | "optimizer" | "dataloader" | "other" | "launch" | "wait" | "copy" | "runtime" | "module" | "annotation" | "overhead" | "tensor_core" | "other_kernels" | "unknown_kernels" | "memory" | "idle_dataloader" | "idle_cpu_launch" | "idle_python" | "idle_other";

export type GapKindName = "host_wait" | "kernel_wait" | "other" | "unknown";

export type GroupKind = "op" | "op_type" | "module";

export type HitKind = "op" | "module" | "kernel" | "rule" | "report";

export type Holder = "before" | "parameters" | "buffers" | "optimizer_state" | "gradients" | "activations" | "casts" | "activation_gradients" | "temporary" | "workspaces" | "communication" | "other";

export type How = "module" | "sequence" | "resized" | "";

export type IdleCause = "dataloader" | "cpu_launch" | "python" | "idle";

export type MemoryCategoryKey = "before" | "parameters" | "buffers" | "optimizer_state" | "gradients" | "activations" | "casts" | "activation_gradients" | "temporary" | "workspaces" | "communication" | "other";

export type MemoryGroupKind = "group" | "before" | "outside" | "held";

export type Named = "op" | "op_type" | "module" | "kernel" | "";

export type OffReason = "gpu_has_none" | "no_tensor_core_kernel" | "dtype" | "unknown" | "too_small" | "amp_off_for_op" | "fp32_tf32_off" | "alignment" | "library_choice" | "layout" | "helpers";

export type Pace = "gpu" | "cpu" | "mixed" | "unknown";

export type Precision = "fp32" | "tf32" | "fp16" | "bf16";

export type Reason = "" | "casts" | "scaler" | "compiled" | "layer" | "replaced" | "more_calls" | "other_op";

export type ReportUnit = "text" | "ns" | "percent" | "bytes" | "count";

export type Role = "forward" | "backward" | "optimizer" | "dataloader" | "other";

export type RuleOutcome = "fired" | "silent" | "not_applicable" | "failed";

export type Severity = "high" | "medium" | "low";

export type Source = "c" | "g" | "i" | "p";

export type Status = "" | "added" | "removed";

export type StepSource = "measured" | "light" | "simulated" | "recorded";

export type SubjectKind = "op" | "op_type" | "kernel" | "module";

export type SweepUnit = "ns" | "per_second" | "percent" | "bytes" | "flops" | "flops_per_second" | "count" | "joules" | "watts";

export type SyncKindName = "wait" | "copy" | "pageable copy" | "scalar read";

export type TabTrace = "copy" | "original";

export type TrackKind = "parts" | "idle" | "stream" | "thread";

export type TrustLevel = "good" | "fair" | "poor";

export type Verdict = "yes" | "no" | "unknown";

/**
 * One (run, session, rank); `cycles` are ascending. Unknown facts are None.
 *
 * `world_size` is that of the job, of which not all ranks need be here. `recorded_iteration_ns` is the mean
 * recorded step, the profiler's time included. `unreadable` says why its last profile cannot be read, where that is
 * known; a page that is not told which run to show takes another.
 */
export interface RunEntry {
  run: string;
  session: string;
  rank: number;
  cycles: number[];
  model: string | null;
  precision: string | null;
  device: string | null;
  created_unix_ns: number | null;
  iterations: number | null;
  recorded_iteration_ns: number | null;
  world_size: number | null;
  unreadable: string;
}

/**
 * `runs` in natural order of run, then session, rank: from the `offset`-th on as many as fit into an answer.
 *
 * There are `total`; the page asks for the next ones until it has all. `revision` changes with any of them, those
 * beyond this answer too; it is empty in the answers that continue the first. `import_command` makes runs of the
 * sessions of TensorFlow's and JAX' profilers that lie in the log directory and are no runs yet; "" without any.
 */
export interface RunIndex {
  plugin_version: string;
  logdir: string;
  runs: RunEntry[];
  offset: number;
  total: number;
  revision: string;
  import_command: string;
}

/** What names one profile: the TensorBoard run, the training process in it, its rank and the profiling cycle. */
export interface RunRef {
  run: string;
  session: string;
  rank: number;
  cycle: number;
}

/** One part of a donut or stacked bar; `value_ns` and `percent` are None if unknown. */
export interface Slice {
  key: string;
  label: string;
  value_ns: number | null;
  percent: number | null;
}

/**
 * One reason for the verdict; `severity` is the best verdict that it allows, "good" if it supports the
 * recording.
 */
export interface TrustReasonText {
  code: string;
  severity: TrustLevel;
  text: string;
}

/**
 * Whether the recording can be trusted; `reasons` come worst first.
 *
 * "good": its figures are reliable; "fair": some of them are not; "poor": most of them are not those of the
 * program without the profiler.
 */
export interface TrustVerdict {
  verdict: TrustLevel;
  reasons: TrustReasonText[];
}

/**
 * The step without the profiler (ms) with its 95 % interval.
 *
 * `source` is one of: "measured" (timed without the profiler), "light" (timed with GPU activities alone),
 * "simulated" (estimated) or "recorded" (as recorded). `recorded_ms` is the mean recorded step.
 */
export interface StepFigures {
  ms: number;
  low_ms: number;
  high_ms: number;
  source: string;
  recorded_ms: number;
}

/**
 * The iterations that were aggregated: indices `first` to `last`, both inclusive, of `total`.
 *
 * `first_number` and `last_number` are the same two as the training counts them, used as labels of bars.
 * `found_by` names what delimits iterations: "profiler_step", "optimizer_step", "step_annotation", "program_run",
 * "inference", "key_node", or "none" if the whole recording is one.
 */
export interface SelectedRange {
  first: number;
  last: number;
  total: number;
  first_number: number;
  last_number: number;
  found_by: string;
}

/** An op of the model that ran in another precision than the run; percent of the time of all matrix work. */
export interface PrecisionRegion {
  name: string;
  precision: string;
  time_ns: number;
  percent: number;
}

/**
 * The precision of the whole recording.
 *
 * `label` is such as "AMP FP16 (autocast)", None for unknown. `evidence` lists what shows it, `disagreements`
 * contradicting settings. `shares` is the time of matrix work by precision: of kernels, or of CPU ops. `regions`
 * are those with most time of `regions_total`.
 */
export interface PrecisionSummary {
  label: string | null;
  evidence: string[];
  disagreements: string[];
  shares: Slice[];
  regions: PrecisionRegion[];
  regions_total: number;
  loss_scaling: Verdict;
}

/** The loss scale at the end of a cycle; `step` counts training steps since the profiler was started. */
export interface LossScalePoint {
  cycle: number;
  step: number | null;
  scale: number;
}

/**
 * State of loss scaling; None is unknown.
 *
 * `skipped_steps` of `checked_steps` optimizer steps were skipped because a gradient was inf or NaN;
 * `skipped_iterations` are their numbers as the training counts them. `steps_since_change` counts good steps since
 * the scale last changed, at the end of the cycle.
 */
export interface NumericHealthPanel {
  headline: string;
  whole_recording: boolean;
  checked_steps: number | null;
  skipped_steps: number | null;
  skipped_iterations: number[];
  loss_scale: number | null;
  steps_since_change: number | null;
  loss_scales: LossScalePoint[];
}

/**
 * DLProf's performance summary over the selected iterations; percentages 0 to 100, None where unknown.
 *
 * `tensor_core_time_percent` is of the time of all kernels, copies and sets. Times and percentages are those of
 * steps without the profiler, `wall_clock_ns` of as many as were selected; `step_low_ns` and `step_high_ns` are
 * the ends of the interval of `average_iteration_ns`. The recorded steps took `recorded_iteration_ns` on average,
 * with `iteration_deviation_ns` among them; `recorder_ns` is the recorder's overhead over all of them.
 * `tensor_core_eligible_ns` is the kernel time of eligible ops, of which the Tensor Core utilization is a share.
 * `threads` is the number of CPU threads with recorded calls.
 */
export interface PerformanceSummary {
  wall_clock_ns: number;
  gpu_utilization_percent: number | null;
  tensor_core_kernel_utilization_percent: number | null;
  tensor_core_eligible_ns: number | null;
  tensor_core_time_percent: number | null;
  gpu_busy_ns: number | null;
  total_iterations: number;
  aggregated_iterations: number;
  start_iteration: number;
  stop_iteration: number;
  average_iteration_ns: number;
  step_low_ns: number;
  step_high_ns: number;
  step_source: StepSource;
  recorded_iteration_ns: number;
  recorded_wall_clock_ns: number;
  recorder_ns: number;
  iteration_deviation_ns: number | null;
  samples_per_second: number | null;
  threads: number;
  peak_memory_bytes: number | null;
  memory_bytes: number | null;
  joules_per_step: number | null;
  watts: number | null;
}

/** A time category, its label and one sentence that defines it. */
export interface Category {
  key: string;
  label: string;
  definition: string;
  recorded: boolean;
}

/**
 * One GPU over the selected iterations; what was not recorded of it is None.
 *
 * `busy_ns` is the time in which a kernel, copy or set ran on it, `tensor_core_ns` that in which a Tensor Core
 * kernel did; the percentages are of the wall clock time without the profiler.
 */
export interface GpuUse {
  id: number;
  name: string | null;
  utilization_percent: number | null;
  busy_ns: number;
  tensor_core_percent: number | null;
  compute_capability: string | null;
  sm_count: number | null;
  memory_bytes: number | null;
  tensor_core_ns: number;
}

/**
 * One bar: the iterations `index` to `last`, both included; the same where it stands for one.
 *
 * `duration_ns` and `category_ns` are means over them, `shortest_ns` and `longest_ns` of single iterations.
 * `category_ns` is in the order of the page's categories and sums to the duration; None for a category that was not
 * recorded. `selected` says whether any of them is.
 */
export interface IterationBar {
  index: number;
  last: number;
  number: number;
  last_number: number;
  start_ns: number;
  duration_ns: number;
  shortest_ns: number;
  longest_ns: number;
  category_ns: (number | null)[];
  selected: boolean;
}

/**
 * One op of the model: all calls with the same module, type and direction in the selected iterations.
 *
 * CPU times are None where the recording has none of its calls: averages of TensorRT's layers, ops in command buffers.
 */
export interface OpRow {
  id: string;
  name: string;
  role: Role;
  gpu_ns: number | null;
  gpu_percent: number | null;
  calls: number;
  tc_eligible: Verdict;
  using_tc: Verdict;
  kernel_calls: number;
  precision: string;
  op_type: string;
  cpu_total_ns: number | null;
  cpu_self_ns: number | null;
  module: string;
  shapes: string;
  dtypes: string;
  direction: Direction;
}

/** One line of the system configuration; `value` is None for what was not recorded. */
export interface SystemItem {
  group: string;
  label: string;
  value: string | null;
}

/**
 * A finding in one line; the Advice page has the rest.
 *
 * Its saving per step lies between `low_ns` and `high_ns`; `saving_percent` is of the step without the profiler.
 */
export interface FindingLine {
  id: string;
  rule: string;
  severity: string;
  title: string;
  saving_ns: number | null;
  low_ns: number | null;
  high_ns: number | null;
  saving_percent: number | null;
}

/**
 * How much of the kernel, copy and set time on the GPU is attributed to ops (ns, over the whole recording).
 *
 * `linked + orphan + unattributed == total`; `outside` is the part of `linked` launched outside every
 * iteration. Orphans were launched before the recording began and belong to no op.
 */
export interface Coverage {
  total_ns: number;
  linked_ns: number;
  orphan_ns: number;
  unattributed_ns: number;
  outside_ns: number;
  linked_percent: number | null;
}

/** Something that was repaired, lost or is not in the source; `count` is None if unknown. */
export interface NoteItem {
  code: string;
  text: string;
  count: number | null;
}

/**
 * Everything on the Summary page. `headline` answers "where did the time go?" in one sentence.
 *
 * `account` is one step without the profiler by what it consists of: its times sum to the step, and are those of the
 * waterfall on the Compare page. `findings` by falling expected saving.
 *
 * `step_words` gives the source of the step's length. Shares are of steps without the profiler; `iterations` are
 * as recorded, by `buckets`: those of `account`, and what the recorder added. `categories` are DLProf's, with
 * their times in `resource_usage`. `bars_note` says what a bar represents, empty if it is one iteration.
 */
export interface Overview {
  ref: RunRef;
  title: string;
  headline: string;
  account: Slice[];
  trust: TrustVerdict;
  step: StepFigures;
  step_words: string;
  range: SelectedRange;
  has_gpu: boolean;
  precision: PrecisionSummary;
  numeric_health: NumericHealthPanel | null;
  summary: PerformanceSummary;
  categories: Category[];
  gpu_utilization: Slice[];
  gpus: GpuUse[];
  resource_usage: Slice[];
  parts: Slice[];
  kernel_time: Slice[];
  tensor_core_efficiency: Slice[];
  buckets: Category[];
  iterations: IterationBar[];
  bars_note: string;
  top_ops: OpRow[];
  system: SystemItem[];
  findings: FindingLine[];
  coverage: Coverage;
  notes: NoteItem[];
}

/** A piece of a sentence. With a `kind` it is the name of the item of this `id`; an op type's id is its name. */
export interface TextPart {
  text: string;
  kind: Named;
  id: string;
}

/** `rows` by falling GPU time (CPU time without a GPU); `total_rows` counts those before the row limit. */
export interface OpsPage {
  ref: RunRef;
  headline: string;
  headline_parts: TextPart[];
  range: SelectedRange;
  has_gpu: boolean;
  rows: OpRow[];
  total_rows: number;
  coverage: Coverage;
}

/**
 * All ops of one type; `ops` counts them by module and direction. Times in ns over the selected iterations.
 *
 * `forward_ns + backward_ns + rest_ns` is the GPU time, without a GPU the CPU self time; `percent` is its share.
 * `utilization_percent` is the share of Tensor Core kernels in the kernel time that could use them
 * (`eligible_ns`), None where there is none or too much of it is unknown.
 */
export interface OpTypeRow {
  op_type: string;
  gpu_ns: number | null;
  percent: number | null;
  forward_ns: number;
  backward_ns: number;
  ops: number;
  calls: number;
  tc_eligible: Verdict;
  eligible_ns: number | null;
  tc_ns: number | null;
  utilization_percent: number | null;
  kernel_calls: number;
  cpu_self_ns: number | null;
  cpu_total_ns: number | null;
  rest_ns: number;
}

/**
 * `rows` by falling GPU time (CPU self time without a GPU).
 *
 * `by_type` is that time as parts of a whole, the types of least time together as "other types".
 */
export interface OpTypesPage {
  ref: RunRef;
  headline: string;
  headline_parts: TextPart[];
  range: SelectedRange;
  has_gpu: boolean;
  by_type: Slice[];
  rows: OpTypeRow[];
  total_rows: number;
  coverage: Coverage;
}

/**
 * An op with its GPU time, without a GPU its CPU self time. `kernels` index those of the tree,
 * `kernel_ns` are their times in this op; they sum to less than its time where the smallest were left out.
 */
export interface TreeOp {
  id: string;
  name: string;
  module: string;
  op_type: string;
  direction: Direction;
  tc_eligible: Verdict;
  time_ns: number;
  kernels: number[];
  kernel_ns: number[];
}

/** A kernel, once for all ops that launched it. */
export interface TreeKernel {
  id: string;
  short_name: string;
  tensor_core: Verdict;
}

/** `ops` by falling time; `total_ops` counts those before the limit. */
export interface WorkTree {
  ref: RunRef;
  range: SelectedRange;
  has_gpu: boolean;
  ops: TreeOp[];
  total_ops: number;
  kernels: TreeKernel[];
}

/**
 * Whether Tensor Cores could compute it and do, and why. Times (ns) are those of kernels in eligible ops.
 *
 * `utilization_percent` is None where nothing is eligible or too much of it is unknown.
 */
export interface WorkTensorCores {
  eligible: Verdict;
  using: Verdict;
  eligible_ns: number | null;
  tc_ns: number | null;
  utilization_percent: number | null;
  reason: string;
}

/**
 * Where the matrix routines are under the GPU's roofs; None is unknown.
 *
 * `roof` names the precision that they ran in, "" where it differs. `percent_of_ceiling` is weighted by time and
 * may exceed 100: Winograd and FFT convolutions multiply less often than the FLOPs assume. `bound` is what sets most
 * of the least time.
 */
export interface WorkRate {
  flops_per_second: number | null;
  ceiling_flops_per_second: number | null;
  percent_of_ceiling: number | null;
  bound: Bound;
  roof: string;
}

/**
 * Kernels, copies and sets: how many, how many of known delay, and their delays (ns).
 *
 * `waits` of them ended a gap in which their GPU was idle, for `waited_ns` in all, as recorded.
 */
export interface WorkLaunches {
  launches: number;
  timed: number;
  mean_delay_ns: number | null;
  max_delay_ns: number | null;
  waits: number;
  waited_ns: number;
}

/**
 * Memory that its ops allocated and that is in use at the peak of the selected iterations: on `device`, "cpu" or
 * a GPU's number. `percent` is the share of all memory at that moment.
 */
export interface WorkMemory {
  device: string;
  bytes: number;
  percent: number | null;
  allocations: number;
}

/** The longest launch on the GPU, without any the longest call: its event on the timeline of iteration `index`. */
export interface WorkSpot {
  index: number;
  number: number;
  event: string;
  name: string;
  duration_ns: number;
}

/** An op that the work belongs to, with its part of the time: GPU time, without a GPU CPU self time. */
export interface WorkOp {
  id: string;
  name: string;
  time_ns: number;
  percent: number | null;
  direction: Direction;
}

/** The calls with one set of input shapes and data types. */
export interface OpShapes {
  shapes: string;
  dtypes: string;
  calls: number;
  gpu_ns: number | null;
  cpu_total_ns: number;
}

/** A kernel that was launched; `percent` is its share of all that was. */
export interface OpKernel {
  id: string;
  name: string;
  total_ns: number;
  percent: number | null;
  tensor_core: Verdict;
  precision: string;
  average_ns: number;
  calls: number;
  family: string;
  bytes: number | null;
  short_name: string;
  rule: string;
}

/**
 * Times in one iteration, or their means over `index` to `last` where these are several iterations.
 *
 * `shortest_ns` and `longest_ns` are of single iterations, GPU time or, without a GPU, CPU time. `calls` are
 * those of the ops, of a kernel its launches; `cpu_total_ns` is None for a kernel.
 */
export interface WorkIteration {
  index: number;
  last: number;
  number: number;
  last_number: number;
  calls: number;
  cpu_total_ns: number | null;
  gpu_ns: number | null;
  shortest_ns: number;
  longest_ns: number;
}

/**
 * What was selected, scoped to it. Times are over the selected iterations, `iterations` has all.
 *
 * `row` and `eligibility_reason` are an op's, None and "" for others. `rate` is None without matrix routines on
 * the GPU and for a kernel, whose FLOPs are counted by op. `memory` is None where it was not recorded or not
 * attributed. `ops` are those of most time, empty for an op. `bars_note` explains `iterations` if each covers
 * several.
 */
export interface WorkDetail {
  ref: RunRef;
  range: SelectedRange;
  kind: SubjectKind;
  id: string;
  name: string;
  has_gpu: boolean;
  row: OpRow | null;
  eligibility_reason: string;
  tensor_cores: WorkTensorCores | null;
  rate: WorkRate | null;
  launches: WorkLaunches;
  memory: WorkMemory | null;
  longest: WorkSpot | null;
  ops: WorkOp[];
  total_ops: number;
  shapes: OpShapes[];
  total_shapes: number;
  kernels: OpKernel[];
  total_kernels: number;
  iterations: WorkIteration[];
  bars_note: string;
}

/**
 * One module with all modules below it, or (`role` set, `path` empty) the work of one role outside all modules.
 *
 * Path "" without a role is the whole model. `order` counts modules as they were first called, each before those in
 * it; `children` counts the modules right below. GPU times are flattened but for `gpu_sum_ns` and its share
 * `gpu_percent`; they are None without a GPU. Calls, forward and backward times are None for a role.
 */
export interface ModuleRow {
  path: string;
  type: string;
  gpu_ns: number | null;
  gpu_percent: number | null;
  gpu_forward_ns: number | null;
  gpu_backward_ns: number | null;
  gpu_own_ns: number | null;
  calls: number | null;
  eligible_ns: number | null;
  tc_ns: number | null;
  utilization_percent: number | null;
  tc_eligible_ops: number | null;
  tc_using_ops: number | null;
  kernel_calls: number | null;
  cpu_ns: number;
  cpu_percent: number | null;
  cpu_forward_ns: number | null;
  cpu_backward_ns: number | null;
  cpu_own_ns: number;
  gpu_min_ns: number | null;
  gpu_max_ns: number | null;
  gpu_sum_ns: number | null;
  cpu_min_ns: number;
  cpu_max_ns: number;
  op_calls: number;
  ops: number;
  order: number;
  role: Role | null;
  children: number;
  calls_per_iteration: number | null;
  gpu_average_ns: number | null;
  cpu_average_ns: number;
}

/**
 * `rows` by falling GPU time (CPU time without a GPU), a module always before those below it.
 *
 * So the first of them are a tree too; `total_rows` counts them before the row limit. Without recorded modules there
 * are no rows: `remedy` says what to do, for PyTorch's own profiler it is "".
 * `model` names the root. `from_stacks`: paths are made of Python stack frames, "ResNet_0.Conv2d_3".
 */
export interface ModulesPage {
  ref: RunRef;
  headline: string;
  headline_parts: TextPart[];
  range: SelectedRange;
  has_gpu: boolean;
  model: string;
  from_stacks: boolean;
  remedy: string;
  rows: ModuleRow[];
  outside: ModuleRow[];
  total_rows: number;
  coverage: Coverage;
}

/** The op (by id), op type (by name) or module (by key) whose launches alone are counted. */
export interface KernelScope {
  kind: GroupKind;
  id: string;
  name: string;
}

/** What Nsight Compute measured of `launches` of the selected launches; sums are over all of them. */
export interface MeasuredCounters {
  launches: number;
  dram_bytes: number | null;
  flops: number | null;
  tensor_instructions: number | null;
}

/** An op that launched the kernel. */
export interface KernelOp {
  id: string;
  name: string;
  total_ns: number;
}

/**
 * One kernel name; `rule` names the rule that decided its Tensor Core verdict. Times in ns over the selected
 * iterations. `told_by` is set where several rows have this short name: the op of most time, and where that is the
 * same, too, the launch shape. `occupancy_measured` says that the occupancy is Nsight Compute's, not an estimate.
 */
export interface KernelRow {
  id: string;
  name: string;
  total_ns: number;
  percent: number | null;
  calls: number;
  average_ns: number;
  tensor_core: Verdict;
  precision: string;
  family: string;
  occupancy_percent: number | null;
  min_ns: number;
  max_ns: number;
  kind: string;
  grid: string;
  block: string;
  registers_per_thread: number | null;
  shared_memory_bytes: number | null;
  bytes: number | null;
  rule: string;
  short_name: string;
  told_by: string;
  occupancy_measured: boolean;
  counters: MeasuredCounters | null;
  ops: KernelOp[];
}

/** `rows` by falling time; `by_family` sums them per kind of work. `scope` is None for all launches. */
export interface KernelsPage {
  ref: RunRef;
  scope: KernelScope | null;
  headline: string;
  headline_parts: TextPart[];
  range: SelectedRange;
  has_gpu: boolean;
  by_family: Slice[];
  rows: KernelRow[];
  total_rows: number;
  coverage: Coverage;
}

/**
 * Of the selected iterations; the first two are shares of the step without the profiler, the rest is as recorded.
 *
 * Delays in ns; `launches` counts kernels, copies and sets, `timed` those of them whose delay is known.
 * `started_early` began before their call returned and count as a delay of 0; `clock_disagrees` seem to begin
 * before their call did, and have no delay.
 */
export interface LaunchFigures {
  idle_percent: number | null;
  slack_percent: number | null;
  launches: number;
  timed: number;
  median_delay_ns: number | null;
  mean_delay_ns: number | null;
  max_delay_ns: number | null;
  mean_queue: number | null;
  max_queue: number | null;
  short_percent: number | null;
  started_early: number;
  clock_disagrees: number;
  sync_calls_per_iteration: number;
  sync_ns_per_iteration: number;
}

/** Idle time of the GPU in which the CPU does one thing, such as copying; it is a part of the time of `cause`. */
export interface IdleActivity {
  key: string;
  cause: IdleCause;
  label: string;
  value_ns: number;
  percent: number | null;
}

/**
 * One recorded iteration on one GPU. `busy_ns + idle_ns == duration_ns`; `idle_by_cause_ns` in the order of
 * `LaunchesPage.causes` sums to `idle_ns`. `late_percent` is idle time because work was launched late,
 * `slack_percent` time that the CPU did not need; None where the launches or the CPU were not recorded.
 */
export interface PaceRow {
  number: number;
  gpu: number;
  pace: Pace;
  duration_ns: number;
  idle_percent: number | null;
  late_percent: number | null;
  slack_percent: number | null;
  gaps: number;
  longest_gap_ns: number;
  idle_by_cause_ns: number[];
  index: number;
  busy_ns: number;
  idle_ns: number;
}

/**
 * One kernel, copy or set by name: its delay between launch and start, and the depth of the queue.
 *
 * Times in ns. Delay, queue and call are None where no launch call was recorded. `short_percent` is the share of
 * calls that took less time than the call which launched them.
 */
export interface LaunchedKernel {
  id: string;
  name: string;
  mean_delay_ns: number | null;
  max_delay_ns: number | null;
  mean_queue: number | null;
  max_queue: number | null;
  calls: number;
  mean_call_ns: number | null;
  average_ns: number;
  short_percent: number | null;
  kind: string;
  short_name: string;
}

/**
 * Synchronising calls of one name in one op: `op` is the outermost (its id "" for a call from Python),
 * `inner_op` the innermost. `time_ns` is the time inside the calls, `percent` its share of the recorded
 * iterations.
 */
export interface SyncRow {
  call: string;
  op: string;
  time_ns: number;
  percent: number | null;
  calls: number;
  average_ns: number;
  max_ns: number;
  kind: SyncKindName;
  role: Role;
  inner_op: string;
  op_id: string;
  module: string;
  calls_per_iteration: number;
  ns_per_iteration: number;
}

/**
 * An idle gap of one GPU in the recording: from `start_ns` after the iteration's start. `cause_ns` in the
 * order of the page's causes sums to `duration_ns`; `cause` is the largest. The fields of the work that
 * ended it are "" if the iteration ended first. `event` is its id on the timeline of its iteration.
 */
export interface GapRow {
  kernel: string;
  duration_ns: number;
  percent: number | null;
  number: number;
  gpu: number;
  start_ns: number;
  cause: IdleCause;
  kind: GapKindName;
  op: string;
  index: number;
  cause_ns: number[];
  kernel_id: string;
  op_id: string;
  module: string;
  event: string;
}

/**
 * `bars` are the recorded iterations by `bar_categories`, the GPU's busy time first (means over the GPUs), the
 * recorder's overhead last.
 *
 * `bars_note` says what a bar represents if it is not one iteration. The rest is of the selected iterations.
 * `causes` are those of the idle time, buckets of the account of a step; `idle_by_activity` is the same time in
 * detail. `total_...` count the rows before the limit. Idle slices are shares of the idle time of all GPUs in steps
 * without the profiler.
 */
export interface LaunchesPage {
  ref: RunRef;
  headline: string;
  headline_parts: TextPart[];
  step: StepFigures;
  step_words: string;
  range: SelectedRange;
  has_gpu: boolean;
  gpus: number[];
  figures: LaunchFigures;
  bar_categories: Category[];
  causes: IdleCause[];
  idle_by_cause: Slice[];
  idle_by_activity: IdleActivity[];
  idle_by_kind: Slice[];
  gap_kinds: Category[];
  bars: IterationBar[];
  bars_note: string;
  iterations: PaceRow[];
  total_iterations: number;
  kernels: LaunchedKernel[];
  total_kernels: number;
  syncs: SyncRow[];
  total_syncs: number;
  gaps: GapRow[];
  total_gaps: number;
}

/**
 * The iteration that is shown, and its times in ns since the window's start.
 *
 * It is measured from `start_ns` to `stop_ns`; the CPU ran its calls from `host_start_ns` to `host_stop_ns`.
 */
export interface TimelineIteration {
  index: number;
  number: number;
  duration_ns: number;
  start_ns: number;
  stop_ns: number;
  host_start_ns: number;
  host_stop_ns: number;
}

/** An iteration that could be shown. */
export interface TimelineChoice {
  index: number;
  number: number;
  duration_ns: number;
}

/** A row of the drawing with `levels` lines; `source` is the letter of its events' ids. */
export interface TimelineTrack {
  key: string;
  kind: TrackKind;
  source: string;
  label: string;
  detail: string;
  gpu: number | null;
  levels: number;
}

/**
 * Appearance of events with one name; `index` is the value in the `name` columns of all responses of this
 * iteration. `other`: the event belongs to another iteration.
 */
export interface TimelineName {
  index: number;
  label: string;
  kind: EventKind;
  other: boolean;
}

/**
 * The events of one line of a track, in order of start.
 *
 * `id` and `start` are differences to the value before, the first to 0: rows of the track's source, and ns since
 * the window's start. `duration` in ns.
 */
export interface TimelineLane {
  track: number;
  level: number;
  id: number[];
  start: number[];
  duration: number[];
  name: number[];
}

/**
 * What one line shows of events that are not in this response; `start` as a difference to the value before.
 *
 * In bins: the window has `TimelinePage.bins`. `kind` is an index of `TimelinePage.kinds`, `cover` from 1 to
 * 4: up to a 16th of the segment is covered, a quarter, five eighths, or more.
 */
export interface TimelineSegments {
  track: number;
  level: number;
  start: number[];
  length: number[];
  kind: number[];
  cover: number[];
}

/**
 * Events that `TimelineEventsPage` holds: those that start from `start_ns` on, the last of which ends at
 * `stop_ns`.
 */
export interface TimelineChunk {
  start_ns: number;
  stop_ns: number;
  events: number;
}

/**
 * One event. `id` is a letter for the source (c call, g GPU activity, i idle gap, p part of the step) and a row
 * of it; `start_ns` counts from the window's start. Outside the window `track` is -1 and `kind` "other".
 */
export interface TimelineSpot {
  id: string;
  track: number;
  level: number;
  label: string;
  kind: EventKind;
  start_ns: number;
  duration_ns: number;
}

/**
 * One of the longest of its kind; `op` is the outermost op that it is, lies in or was launched by ("" for none),
 * `percent` its share of the iteration.
 */
export interface LongEvent {
  spot: TimelineSpot;
  op: string;
  module: string;
  percent: number | null;
}

/**
 * `lanes` hold the longest events, all where `chunks` is empty; `segments` the others zoomed out.
 * `window_ns` is the length of the drawing, cut into `bins`. `events` counts all, `deeper` calls nested too
 * deep to be drawn. `iterations` are those that can be shown instead, the nearest where there are many.
 */
export interface TimelinePage {
  ref: RunRef;
  headline: string;
  range: SelectedRange;
  iteration: TimelineIteration;
  iterations: TimelineChoice[];
  window_ns: number;
  has_gpu: boolean;
  events: number;
  deeper: number;
  parts: Slice[];
  tracks: TimelineTrack[];
  names: TimelineName[];
  lanes: TimelineLane[];
  kinds: EventKind[];
  bins: number;
  segments: TimelineSegments[];
  chunks: TimelineChunk[];
  longest_gaps: LongEvent[];
  longest_gpu: LongEvent[];
  longest_ops: LongEvent[];
}

/** Chunk `chunk` of `TimelinePage.chunks`. */
export interface TimelineEventsPage {
  chunk: number;
  names: TimelineName[];
  lanes: TimelineLane[];
}

/**
 * Launch of one GPU activity, as on the Launches page; None if it was not recorded.
 *
 * `call` is the launching CUDA call (or the op, where only that is known), `delay_ns` the time from its end to the
 * activity's start, `queue` the amount of waiting work of the stream, including this one. `early`: it began before
 * the call returned; `clock_disagrees`: before the call began.
 */
export interface TimelineLaunch {
  call: TimelineSpot | null;
  call_ns: number | null;
  delay_ns: number | null;
  queue: number | null;
  early: boolean;
  clock_disagrees: boolean;
}

/** Details of a kernel, copy or set; None or "" if not recorded. */
export interface TimelineGpuWork {
  kernel_id: string;
  kind: string;
  tensor_core: Verdict;
  precision: string;
  grid: string;
  block: string;
  registers_per_thread: number | null;
  shared_memory_bytes: number | null;
  occupancy_percent: number | null;
  bytes: number | null;
  bytes_per_second: number | null;
  launch: TimelineLaunch;
}

/**
 * An idle gap by cause and, in detail, by what the CPU did, and the work that ended it (None where the iteration
 * did). `definitions` are those of the causes, by key; `launched` says when that work was launched, as on the
 * Launches page.
 */
export interface TimelineGap {
  causes: Slice[];
  activities: IdleActivity[];
  definitions: Record<string, string>;
  launched: string;
  ended_by: TimelineSpot | null;
}

/**
 * `around` are the calls around it, the outermost first: of GPU work those around its launching call, that call
 * being the last. `launched` is the GPU work of a call and of all calls in it: the first ones of
 * `launched_total`, which take `launched_ns` together. `iteration` is the number of the one that it belongs to.
 */
export interface TimelineEvent {
  ref: RunRef;
  spot: TimelineSpot;
  name: string;
  track: string;
  iteration: number | null;
  previous: TimelineSpot | null;
  next: TimelineSpot | null;
  inside: TimelineSpot | null;
  around: TimelineSpot[];
  op: string;
  op_id: string;
  module: string;
  role: Role;
  shapes: string;
  dtypes: string;
  self_ns: number | null;
  launched: TimelineSpot[];
  launched_total: number;
  launched_ns: number;
  gpu: TimelineGpuWork | null;
  gap: TimelineGap | null;
}

/** Matches in one track, in order of start, in all its levels; columns as those of `TimelineLane`. */
export interface MatchLane {
  track: number;
  level: number[];
  id: number[];
  start: number[];
  duration: number[];
}

/**
 * `count` events match, of which the first `shown` in time are in `lanes`; `on_gpu` of them are GPU work,
 * which takes `gpu_ns`. `first` is the one to show first: the longest work of an op or op type on the GPU,
 * without any its longest call; the longest launch of a kernel; the first in time of a text.
 */
export interface TimelineMatches {
  count: number;
  shown: number;
  on_gpu: number;
  gpu_ns: number;
  first: TimelineSpot | null;
  lanes: MatchLane[];
}

/**
 * One reason over all eligible ops; `percent` is of the eligible kernel time.
 *
 * `saved_ns` and `at_most_ns` are sums over the ops, of kernel time. An op without a bound counts in
 * `at_most_ns` with all its time; None where no op has one. A `remark` is time of ops that do use Tensor Cores, in
 * kernels that serve the product.
 */
export interface ReasonTotal {
  id: OffReason;
  label: string;
  remark: boolean;
  ops: number;
  time_ns: number;
  percent: number | null;
  saved_ns: number | null;
  at_most_ns: number | null;
  text: string;
}

/**
 * Estimated saving per iteration (ns), its interval, and how it was computed.
 *
 * `low_joules` and `high_joules` are what that saves at the least and at the most where energy was measured.
 */
export interface SavingItem {
  low_ns: number;
  expected_ns: number;
  high_ns: number;
  percent: number;
  derivation: string;
  low_joules: number | null;
  high_joules: number | null;
}

/**
 * The reason why `time_ns` of an op's kernel time is off the Tensor Cores.
 *
 * `saved_ns` is the kernel time that the switch named by the text should save, with its interval; None where no
 * factor is known. Then `at_most_ns` bounds what its remedy could save; None where FLOPs or the GPU's rates are
 * unknown. `shapes` are the inputs of the matrix op with most of the time.
 */
export interface TensorCoreReason {
  id: OffReason;
  label: string;
  text: string;
  time_ns: number;
  shapes: string;
  saved_ns: number | null;
  saved_low_ns: number | null;
  saved_high_ns: number | null;
  at_most_ns: number | null;
}

/**
 * An eligible op: `tc_ns + non_tc_ns + unknown_ns == gpu_ns`.
 *
 * `reason` is the main reason for time off the Tensor Cores; `reasons` lists all, by falling time, and with
 * `layout_ns` and `helpers_ns`, the kernels that serve a product on Tensor Cores, sums to `non_tc_ns +
 * unknown_ns`. `saved_ns` is an estimate of kernel time, None where no remedy has a known factor; `at_most_ns`
 * bounds what the others could save. `could_save_ns` is their sum, `could_save` names its parts.
 */
export interface TensorCoreOp {
  id: string;
  name: string;
  direction: Direction;
  gpu_ns: number;
  could_save_ns: number | null;
  using_tc: Verdict;
  utilization_percent: number | null;
  precision: string;
  reasons: TensorCoreReason[];
  reason: string;
  possible_precisions: string[];
  could_save: CouldSave;
  tc_ns: number;
  non_tc_ns: number;
  unknown_ns: number;
  calls: number;
  op_type: string;
  shapes: string;
  dtypes: string;
  tc_kernels: string[];
  non_tc_kernels: string[];
  unknown_kernels: string[];
  module: string;
  layout_ns: number;
  helpers_ns: number;
  saved_ns: number | null;
  at_most_ns: number | null;
}

/**
 * A kernel inside eligible ops; `rule` decided its verdict, `percent` is of the eligible kernel time.
 *
 * `measured_percent` is how busy it kept the Tensor Cores by the GPU's counter, None where it was not sampled.
 */
export interface TensorCoreKernel {
  id: string;
  name: string;
  total_ns: number;
  percent: number | null;
  calls: number;
  tensor_core: Verdict;
  precision: string;
  family: string;
  measured_percent: number | null;
  rule: string;
}

/** Matrix work that this GPU's Tensor Cores cannot compute, by type of op and reason. */
export interface IneligibleWork {
  id: OffReason;
  op_type: string;
  ops: number;
  time_ns: number;
  text: string;
  label: string;
}

/**
 * `by_precision` splits the kernel time of eligible ops, `by_reason` the part of it off the Tensor Cores.
 *
 * `ops` are by the time that could be saved, a bound taken as if all of it could be; those where it is unknown
 * follow, by the time off the Tensor Cores. `kernels` are by time. `saving` is what the known remedies together
 * should save per step. `measured` are sentences on how busy the GPU's own counter says that the Tensor Cores were,
 * the second where it contradicts verdicts; none where it was not sampled.
 */
export interface TensorCoresPage {
  ref: RunRef;
  headline: string;
  range: SelectedRange;
  has_gpu: boolean;
  supported_precisions: string[];
  utilization_percent: number | null;
  eligible_ns: number | null;
  using_ns: number | null;
  not_using_ns: number | null;
  unknown_ns: number | null;
  by_precision: Slice[];
  by_reason: ReasonTotal[];
  saving: SavingItem | null;
  measured: string[];
  ops: TensorCoreOp[];
  total_rows: number;
  kernels: TensorCoreKernel[];
  ineligible: IneligibleWork[];
}

/**
 * A peak rate of the GPU; `precision` and `tensor_cores` are those of the ops below it.
 *
 * `reached` is True if an op ran in that precision, False for a roof that a change of precision would lead to. FP16
 * and BF16 at one rate are one roof, whose `precision` is the one that most time ran in.
 */
export interface Roof {
  precision: string;
  tensor_cores: boolean;
  label: string;
  flops_per_second: number;
  reached: boolean;
}

/**
 * An op whose matrix routines ran on the GPU; None is unknown.
 *
 * `gpu_ns` is the time of the kernels of its matrix routines. `percent_of_ceiling` may exceed 100:
 * `why_above_roof` then has the reason, else it is "". `bound` names the lower roof.
 */
export interface RooflineOp {
  id: string;
  name: string;
  direction: Direction;
  gpu_ns: number;
  percent_of_ceiling: number | null;
  flops_per_second: number | null;
  ceiling_flops_per_second: number | null;
  precision: string;
  bound: Bound;
  measured: boolean;
  possible_precision: string;
  percent_of_possible: number | null;
  flops: number | null;
  bytes: number | null;
  flops_per_byte: number | null;
  calls: number;
  op_type: string;
  shapes: string;
  dtypes: string;
  module: string;
  tensor_cores: Verdict;
  why_above_roof: string;
}

/**
 * `ops` by falling time. `flops` and `flops_per_iteration` sum the matrix routines whose FLOPs are known.
 *
 * `gpu` is "" where none was used or several kinds; `bytes_per_second`, `roofs` and `source` are empty where
 * its ceilings are unknown. `unknown_percent` is the share of `matrix_ns` in ops whose FLOPs are unknown.
 * `percent_of_ceiling` is over all ops whose ceiling is known, weighted by their time.
 */
export interface RooflinePage {
  ref: RunRef;
  headline: string;
  range: SelectedRange;
  has_gpu: boolean;
  gpu: string;
  source: string;
  bytes_per_second: number | null;
  roofs: Roof[];
  calls: number;
  unknown_calls: number;
  flops: number | null;
  flops_per_iteration: number | null;
  flops_per_second: number | null;
  matrix_ns: number | null;
  unknown_ns: number | null;
  unknown_percent: number | null;
  percent_of_ceiling: number | null;
  ops: RooflineOp[];
  total_rows: number;
}

/** A device whose memory was recorded; `key` is what the route's parameter `device` takes. */
export interface MemoryDevice {
  key: string;
  label: string;
}

/**
 * Totals of the selected iterations (bytes). `fragmentation_bytes` is reserved less allocated at the peak.
 *
 * Percents are of the device's memory. `growth_bytes` is the mean per iteration; `grows` is True if each grew.
 * `relative` is True if neither addresses nor totals were recorded: allocated bytes then count from the lowest
 * moment of the recording, so the total and its share are unknown; at least `known_before_bytes` were
 * allocated when the recording began.
 */
export interface MemoryFigures {
  peak_allocated_bytes: number;
  peak_allocated_percent: number | null;
  peak_reserved_bytes: number | null;
  peak_reserved_percent: number | null;
  fragmentation_bytes: number | null;
  fragmentation_percent: number | null;
  device_memory_bytes: number | null;
  growth_bytes: number;
  grows: boolean;
  relative: boolean;
  known_before_bytes: number;
}

/**
 * Bytes, by a replay of PyTorch's allocator with the recorded step of the highest peak; None where it was not
 * possible, for the reason in `unknown`, and where not recorded.
 */
export interface MemoryLimits {
  smallest_limit_bytes: number | null;
  without_retries_bytes: number | null;
  given_back_bytes: number | null;
  holes_bytes: number | null;
  largest_hole_bytes: number | null;
  outside_bytes: number | null;
  unknown: string;
}

/**
 * When most was allocated, and the op that led to it ("" for none).
 *
 * `time_ns` counts from where the first selected iteration began, `step_time_ns` from where its own did.
 */
export interface MemoryMoment {
  time_ns: number;
  step_time_ns: number;
  iteration_number: number;
  op: string;
  op_id: string | null;
  direction: Direction;
  allocated_bytes: number;
}

/** One category: bytes at the peak (they sum to it) and the most it held at any moment; None where unknown. */
export interface MemoryCategory {
  key: MemoryCategoryKey;
  label: string;
  definition: string;
  bytes: number | null;
  percent: number | null;
  own_peak_bytes: number | null;
}

/**
 * Columns with one entry per moment; each holds from its time (ns after the start) to the next one's.
 *
 * `categories` has one column per category of the page, empty where it is unknown, and none where all are;
 * `reserved` is empty where it was not recorded. `moments` counts those of the recording, of which the highest and
 * lowest were kept.
 */
export interface MemoryCurve {
  time_ns: number[];
  allocated: number[];
  reserved: number[];
  categories: number[][];
  stop_ns: number;
  moments: number;
}

/** One selected iteration: from `start_ns` after the first; `category_bytes` at its own peak, or empty. */
export interface MemoryIteration {
  number: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number | null;
  growth_bytes: number;
  allocations: number;
  index: number;
  start_ns: number;
  category_bytes: (number | null)[];
}

/** What one category holds of one module at the peak; `module` is "" outside of all. */
export interface MemoryPart {
  module: string;
  category: MemoryCategoryKey;
  bytes: number;
}

/**
 * Allocations with the same module, or type of op and direction: alive at the peak, and the most at any moment.
 *
 * Of a module, with its parameters, states and buffers. `kind` is "before" for memory from before the recording that
 * has no name, "outside" for allocations outside ops, and "held" for what has a name and was made by no recorded op.
 */
export interface MemoryGroup {
  kind: MemoryGroupKind;
  name: string;
  direction: Direction;
  bytes: number;
  percent: number | null;
  allocations: number | null;
  own_peak_bytes: number;
}

/**
 * One allocation alive at the peak. `iteration` is the step that made it, None outside all and for what was there
 * when the recording began.
 *
 * `lifetime_ns` is None and `freed` empty where the recording does not free it; `freed` is the number of the
 * step that does, or "outside" the steps.
 */
export interface MemoryAllocation {
  id: number;
  op: string;
  bytes: number;
  percent: number | null;
  direction: Direction;
  category: MemoryCategoryKey;
  iteration: number | null;
  freed: string;
  lifetime_ns: number | null;
  module: string;
  op_id: string | null;
}

/**
 * Memory of one device; all but the headline and `how_to_record` is empty where none was recorded.
 *
 * `rows` are the largest of the `total_rows` allocations alive at the peak, `iterations` at most the first 500
 * selected ones. If the recording does not show which allocations are alive, `not_attributed` gives the reason, and
 * `categories`, `modules`, `op_types` and `rows` are empty; else it is "". `peak_parts` says in words
 * when the peak is and what it holds; `parts` sum to it, by module and category. `limits` is None for the
 * CPU.
 */
export interface MemoryPage {
  ref: RunRef;
  headline: string;
  range: SelectedRange;
  how_to_record: string;
  devices: MemoryDevice[];
  device: string | null;
  figures: MemoryFigures | null;
  limits: MemoryLimits | null;
  peak: MemoryMoment | null;
  peak_parts: TextPart[];
  categories: MemoryCategory[];
  curve: MemoryCurve | null;
  iterations: MemoryIteration[];
  not_attributed: string;
  parts: MemoryPart[];
  modules: MemoryGroup[];
  op_types: MemoryGroup[];
  rows: MemoryAllocation[];
  total_rows: number | null;
  notes: string[];
}

/**
 * One configuration of the tables: a batch size on the run's GPU, or the plan's batch size on another GPU.
 *
 * `verdict` is "fits", "fits with retries", "does not fit" or "not known".
 */
export interface PlanRow {
  gpu: string;
  batch_size: number | null;
  peak_allocated_mb: number | null;
  peak_reserved_mb: number | null;
  smallest_limit_mb: number | null;
  capacity_mb: number | null;
  verdict: string;
  largest_batch: number | null;
  step_ms: number | null;
  samples_per_second: number | null;
}

/** A figure with its interval; `source` says what the interval comes from. */
export interface PlanFigure {
  name: string;
  mb: number;
  low_mb: number;
  high_mb: number;
  source: string;
}

/** What is held between two steps, by kind. */
export interface HeldRow {
  kind: string;
  mb: number;
}

/** A set of modules under activation checkpointing: memory against time. */
export interface CheckpointRow {
  modules: string[];
  peak_allocated_mb: number;
  peak_reserved_mb: number;
  step_ms: number | null;
}

/** One way to share the work over GPUs; sizes are those of the rank with most. */
export interface ShardRow {
  shard: string;
  gpus: number;
  peak_allocated_mb: number;
  peak_reserved_mb: number;
  verdict: string;
}

/** A stage of the model cut over GPUs: its modules, in the order of the forward pass. */
export interface StageRow {
  modules: string[];
  peak_allocated_mb: number;
  peak_reserved_mb: number;
}

/**
 * How many more modules like `module` fit; `now` is how many there are at its place, itself
 * included.
 */
export interface Depth {
  module: string;
  now: number;
  more: number;
}

/**
 * The plan of one configuration, and the tables around it: batch sizes, GPUs, sets of checkpoints.
 *
 * `low_mb` and `high_mb` are the ends of `peak_reserved_mb`; `figures` has all intervals. `sequence_length`
 * and `image_size` are None where the model has no such input. `unknown` has the reason for each figure that is
 * None, by its name.
 */
export interface PlanPage {
  ref: RunRef;
  model: string;
  headline: string;
  range: SelectedRange;
  gpu: string;
  batch_size: number | null;
  sequence_length: number | null;
  image_size: number | null;
  verdict: string;
  fits: boolean | null;
  peak_allocated_mb: number | null;
  peak_reserved_mb: number | null;
  low_mb: number | null;
  high_mb: number | null;
  smallest_limit_mb: number | null;
  capacity_mb: number | null;
  largest_batch: number | null;
  step_ms: number | null;
  step_low_ms: number | null;
  step_high_ms: number | null;
  samples_per_second: number | null;
  joules_per_step: number | null;
  unknown: Record<string, string>;
  batches: PlanRow[];
  figures: PlanFigure[];
  held: HeldRow[];
  gpus: PlanRow[];
  checkpoints: CheckpointRow[];
  shards: ShardRow[];
  stages: StageRow[];
  gpus_needed: number | null;
  deepest: Depth | null;
  assumptions: string[];
}

/** The job in numbers; None is unknown. */
export interface JobFigures {
  step_ns: number | null;
  step_low_ns: number | null;
  step_high_ns: number | null;
  parallel_percent: number | null;
  balance_percent: number | null;
  communication_percent: number | null;
  wasted_percent: number | null;
  wasted_gpu_hours_per_day: number | null;
  flops_utilization_percent: number | null;
  matched_percent: number | null;
  clock_us: number | null;
  simulated_error_percent: number | null;
}

/** Where the step of each rank goes: columns with one entry per rank (ns per step), which add up to `step_ns`. */
export interface JobAccount {
  rank: number[];
  step_ns: number[];
  compute_ns: number[];
  transfer_ns: number[];
  waiting_ns: (number | null)[];
  bubble_ns: number[];
  host_ns: number[];
}

/** What a rank costs the others (ns per step). */
export interface JobDelay {
  rank: number;
  host: string;
  owed_ns: number;
  winnable_ns: number;
  cause: string;
  significant: boolean;
  why: string;
}

/** The job's step after one change (ns). */
export interface JobWhatIf {
  change: string;
  step_ns: number;
  low_ns: number;
  high_ns: number;
  saved_percent: number | null;
}

/** Calls of one operation, dimension, size and module over all ranks; times are means per rank and step (ns). */
export interface JobCollective {
  operation: string;
  dimension: string;
  size: string;
  module: string;
  calls_per_step: number;
  bytes: number | null;
  transfer_ns: number;
  waiting_ns: number | null;
  exposed_ns: number;
  bus_bytes_per_second: number | null;
  attainable_bytes_per_second: number | null;
  verdict: string;
  hiding_bytes_per_second: number | null;
}

/**
 * Ranks x iterations: by how many percent each rank worked longer by itself than the median rank, row by row.
 *
 * A row is a rank, or several of which the worst is shown: `first` and `last` are their numbers. None is not
 * recorded. `of_rank` is the mean over the iterations of each rank of `JobAccount`.
 */
export interface JobHeat {
  first: number[];
  last: number[];
  iterations: number[];
  percent: (number | null)[];
  of_rank: (number | null)[];
}

/** A dimension of the mesh: the place of each rank of `JobAccount` in it. */
export interface JobDimension {
  name: string;
  size: number;
  place: number[];
}

/**
 * All ranks of a run together.
 *
 * `ranks` are recorded, of `world_size`; `shown_ranks` are worth looking at side by side.
 */
export interface DistributedPage {
  ref: RunRef;
  headline: string;
  world_size: number;
  ranks: number;
  missing: string;
  figures: JobFigures;
  account: JobAccount;
  delays: JobDelay[];
  what_if: JobWhatIf[];
  collectives: JobCollective[];
  heat: JobHeat | null;
  mesh: JobDimension[];
  shown_ranks: number[];
  notes: string[];
}

/**
 * A part of the step, mean of all ranks of each job (ns). The differences add up to that of the step, the last
 * row.
 */
export interface JobPart {
  part: string;
  base_ns: number | null;
  candidate_ns: number | null;
  difference_ns: number | null;
}

/** A rank that delays the others in one of the two jobs, or in both; ns per step. */
export interface JobDelayChange {
  what: string;
  rank: number;
  cause: string;
  base_winnable_ns: number | null;
  winnable_ns: number | null;
  why: string;
}

/**
 * By how much each part of a rank's step changed (ns); the parts add up to `step_ns`.
 *
 * `base_ranks` names the ranks of the base that it is compared with.
 */
export interface JobRankChange {
  rank: number;
  base_ranks: string;
  compute_ns: number;
  transfer_ns: number;
  waiting_ns: number | null;
  bubble_ns: number;
  host_ns: number;
  step_ns: number;
}

/**
 * Calls of one operation, dimension, size and module before and after: means per rank and step as recorded (ns).
 *
 * None where a job makes no such calls.
 */
export interface JobCollectiveChange {
  operation: string;
  dimension: string;
  size: string;
  module: string;
  base_calls: number | null;
  calls: number | null;
  base_transfer_ns: number | null;
  transfer_ns: number | null;
  base_waiting_ns: number | null;
  waiting_ns: number | null;
  base_exposed_ns: number | null;
  exposed_ns: number | null;
  difference_ns: number;
}

/** A job of a series of sizes; factors are over the smallest job's. */
export interface ScaledRow {
  job: string;
  gpus: number;
  step_ns: number;
  work: number | null;
  throughput: number | null;
  efficiency_percent: number | null;
  compute: number | null;
  host: number | null;
  transfer: number | null;
  waiting: number | null;
  bubble: number | null;
  flops_utilization_percent: number | null;
  wasted_gpu_hours_per_day: number | null;
}

/** A job against `base`, and the series of all jobs that were named where they have several sizes. */
export interface OtherJobsPage {
  ref: RunRef;
  base: string;
  headline: string;
  parts: JobPart[];
  delays: JobDelayChange[];
  ranks: JobRankChange[];
  collectives: JobCollectiveChange[];
  scaling_headline: string;
  scaling: ScaledRow[];
  notes: string[];
}

/**
 * The collectives of a rank in one step: columns in order of start, times in ns after the begin of the picture.
 *
 * `begin_ns` is where the rank's own step begins. `work_ns` is how long the GPU worked since the collective
 * before, `waiting_ns` the part of the collective that it waited for others, `name` an index into
 * `RankLinesPage.names`; equal numbers of `match` are one collective, -1 one that was not found on other ranks.
 */
export interface RankLine {
  rank: number;
  begin_ns: number;
  start_ns: number[];
  duration_ns: number[];
  waiting_ns: number[];
  work_ns: number[];
  name: number[];
  match: number[];
}

/** A step of the ranks that were asked for. `clocks` says how well their clocks are aligned. */
export interface RankLinesPage {
  step: number;
  length_ns: number;
  clocks: string;
  names: string[];
  lines: RankLine[];
}

/** Another precision or batch size; `why` says why it is not known. The first row is as recorded. */
export interface EnergyChoice {
  precision: string;
  batch_size: number | null;
  step_ms: number | null;
  joules_per_step: number | null;
  low_joules: number | null;
  high_joules: number | null;
  joules_per_sample: number | null;
  saved_percent: number | null;
  why: string;
}

/** What held the GPU's clock down, in percent of the readings over steps without the profiler. */
export interface EnergyLimit {
  name: string;
  percent: number;
}

/** Joules of a step of one kind of work, or of the GPU at rest. */
export interface EnergyPart {
  kind: string;
  joules: number;
  percent: number;
}

/** Joules of a step above rest of one module with all below it; path "" is the whole model. */
export interface EnergyModule {
  path: string;
  joules: number;
  percent: number;
}

/** Joules of a step above rest of one op; `watts` is its mean power above rest while it runs. */
export interface EnergyOp {
  id: string;
  name: string;
  direction: Direction;
  joules: number;
  percent: number;
  watts: number | null;
}

/**
 * An epoch of all processes, each taken to need what this one does; `cost` and `co2_grams` None without a
 * price or factor.
 */
export interface EpochEnergy {
  steps: number;
  processes: number;
  hours: number;
  kwh: number;
  cost: number | null;
  co2_grams: number | null;
}

/**
 * Energy of this process's GPUs in a step without the profiler.
 *
 * `power_limit_watts` is the limit in force. `residual_percent` is what the estimate of the step from kernels
 * alone is off the counter. `unknown` maps what is not known to why. Parts, modules and ops are empty where the
 * energy cannot be divided.
 */
export interface EnergyPage {
  ref: RunRef;
  headline: string;
  range: SelectedRange;
  joules_per_step: number | null;
  low_joules: number | null;
  high_joules: number | null;
  joules_per_sample: number | null;
  watts: number | null;
  idle_watts: number | null;
  idle_percent: number | null;
  power_limit_watts: number | null;
  sm_clock_mhz: number | null;
  temperature_c: number | null;
  seconds: number | null;
  choices: EnergyChoice[];
  limits: EnergyLimit[];
  residual_percent: number | null;
  parts: EnergyPart[];
  modules: EnergyModule[];
  ops: EnergyOp[];
  total_ops: number;
  epoch: EpochEnergy | null;
  unknown: Record<string, string>;
}

/**
 * An op that is called once a step, or nearly; `calls` in the whole recording.
 *
 * `key_node` names it: its Op Name, or its Op ID if the name is ambiguous.
 */
export interface KeyNodeCandidate {
  key_node: string;
  id: string;
  name: string;
  direction: Direction;
  calls: number;
}

/**
 * Candidates for the key node of a recording, the most likely first.
 *
 * `found_by` and `iterations` are those of the recording without one: `found_by` as in `SelectedRange`,
 * `iterations` how many were found, 0 where none were.
 */
export interface KeyNodesPage {
  ref: RunRef;
  found_by: string;
  iterations: number;
  rows: KeyNodeCandidate[];
  total_rows: number;
}

/**
 * Something with the words in its name. `id` is the id in the page's URL: an op's id, a module's path.
 *
 * `fit` rates the match: for each word 0 where a part of the name is that word, 1 where one begins with it, 2 for
 * the rest. `value_ns` is its time in the selected iterations, on the GPU or, without one, on the CPU; None where it
 * has none.
 */
export interface SearchHit {
  kind: HitKind;
  id: string;
  label: string;
  detail: string;
  value_ns: number | null;
  fit: number;
}

/**
 * `hits` of each kind by fit, then by falling time, at most `HITS_PER_KIND`; `found` counts all.
 *
 * `iterations` divides the hits' times into times per step; 1 where no step was found.
 */
export interface SearchPage {
  ref: RunRef;
  text: string;
  iterations: number;
  hits: SearchHit[];
  found: Record<string, number>;
}

/**
 * The items related to the `kind` of item with this `id`, in the selected iterations.
 *
 * `ops` and `kernels` are ids. `modules` are keys as the Modules page has them: a path, or ":role" for the work
 * of one part of the step outside all modules. Of an op: itself, the kernels that it launched and its module; of an
 * op type: those of all its ops. Of a kernel: the ops that launched it and their modules. Of a module: all ops in it
 * and in the modules below it.
 */
export interface Related {
  ref: RunRef;
  kind: SubjectKind;
  id: string;
  name: string;
  ops: string[];
  kernels: string[];
  modules: string[];
}

/** One report of the picker: its title and the question that it answers. */
export interface ReportEntry {
  name: string;
  title: string;
  question: string;
  of_dlprof: boolean;
}

/**
 * A column: `key` as in the JSON file, `label` is the heading of the CSV file without ns and bytes.
 *
 * `verdict` columns hold "yes", "no" or None for unknown; in others None is unknown.
 */
export interface ReportColumn {
  key: string;
  label: string;
  unit: ReportUnit;
  verdict: boolean;
  meaning: string;
}

/**
 * One report; `headline` answers `question`.
 *
 * `rows` have a cell for each of `columns`, `total_rows` counts all.
 */
export interface ReportPage {
  ref: RunRef;
  range: SelectedRange;
  name: string;
  title: string;
  question: string;
  headline: string;
  reports: ReportEntry[];
  columns: ReportColumn[];
  rows: ((string | number | null)[])[];
  total_rows: number;
  notes: string[];
}

/** A number that a rule evaluated; `threshold` is the limit that it was compared with, in the same unit. */
export interface Reading {
  label: string;
  value: number | null;
  unit: "bytes" | "count" | "ns" | "percent" | "ratio";
  threshold: number | null;
}

/**
 * A row behind a finding: `page` and `id` name the page and row that show it ("ops" and an op id, for
 * example).
 */
export interface EvidenceRow {
  label: string;
  value_ns: number | null;
  percent: number | null;
  page: string;
  id: string;
}

/** Further reading. */
export interface Reference {
  title: string;
  url: string;
}

/** A rule of another tool for the same problem, by its name there. */
export interface Peer {
  tool: string;
  name: string;
}

/**
 * One finding, of the rule whose page in the docs has its name.
 *
 * Where `saving` is None it cannot be estimated; `saving_unknown_because` gives the reason. `confidence` is
 * "high" for what was measured or proven, "medium" for an estimate, "low" for a guess from signs.
 */
export interface FindingItem {
  id: string;
  rule: string;
  severity: Severity;
  title: string;
  seen: string;
  readings: Reading[];
  evidence: EvidenceRow[];
  change: string;
  code: string;
  saving: SavingItem | null;
  saving_unknown_because: string;
  confirm: string;
  confidence: Severity;
  references: Reference[];
  peers: Peer[];
}

/**
 * Saving per step (ns) of all findings with a saving, without counting overlapping time twice.
 *
 * `added_up_ns` is the plain sum of the expected savings, which overlap.
 */
export interface CombinedSaving {
  low_ns: number;
  expected_ns: number;
  high_ns: number;
  percent: number;
  findings: number;
  added_up_ns: number;
}

/** A rule, its outcome and the reason; `looks_for` and `ignore_when` are its fixed texts. */
export interface RuleLine {
  rule: string;
  title: string;
  topic: string;
  outcome: RuleOutcome;
  why: string;
  looks_for: string;
  ignore_when: string;
}

/**
 * Kernel time of one op per iteration, as measured and as forecast; `casts_ms` comes on top.
 *
 * `precision` is what its kernels would compute in, "" for an op that keeps its time.
 */
export interface ForecastOp {
  id: string;
  name: string;
  direction: Direction;
  measured_ms: number;
  predicted_ms: number;
  speedup: number | null;
  casts_ms: number;
  precision: string;
  module: string;
  op_type: string;
}

/**
 * Times per step in ms. `measured_step_ms` is the recorded step, which the profiler made longer where the CPU
 * sets the pace; `unprofiled_step_ms` is the estimate of it without the profiler, which `speedup` is against.
 */
export interface ForecastPage {
  ref: RunRef;
  model: string;
  gpu: string;
  precision: string;
  batch_size: number | null;
  headline: string;
  measured_step_ms: number;
  unprofiled_step_ms: number;
  predicted_step_ms: number;
  low_ms: number;
  high_ms: number;
  speedup: number;
  speedup_low: number;
  speedup_high: number;
  limited_by: string;
  limit_text: string;
  gpu_ms: number;
  gpu_before_ms: number;
  cpu_ms: number;
  casts: number;
  casts_ms: number;
  scaler_ms: number;
  total_rows: number;
  ops: ForecastOp[];
}

/**
 * One precision that an FP32 run could use: what to change, and its forecast without the ops.
 *
 * Without a forecast, `refusal` gives the reason and `forecast` is None.
 */
export interface MixedPrecisionChoice {
  precision: string;
  label: string;
  change: string;
  code: string;
  refusal: string;
  forecast: ForecastPage | null;
}

/** What mixed precision would gain, over all recorded iterations; `choices` are TF32, FP16, BF16. */
export interface MixedPrecision {
  choices: MixedPrecisionChoice[];
  iterations: number;
}

/**
 * `step` is the step without the profiler, which savings refer to. `findings` by falling expected saving;
 * `mixed_precision` are the forecasts for this run, all iterations.
 *
 * `combined` is the combined saving of the open findings, `combined_text` explains it. `rules` are
 * sorted by topic.
 */
export interface AdvicePage {
  ref: RunRef;
  title: string;
  headline: string;
  range: SelectedRange;
  step: StepFigures;
  findings: FindingItem[];
  combined: CombinedSaving | null;
  combined_text: string;
  rules: RuleLine[];
  mixed_precision: MixedPrecision;
}

/** A remedy, or a set of them, that was run next to the baseline. */
export interface TriedRow {
  remedy: string;
  before_ns: number | null;
  after_ns: number | null;
  gain_percent: number | null;
  low_percent: number | null;
  high_percent: number | null;
  forecast_percent: number | null;
  memory_bytes: number | null;
  joules: number | null;
  start_s: number | null;
  verdict: string;
  title: string;
  is_gain: boolean;
  verdict_text: string;
  changes: string;
  code: string;
  run: string;
}

/** A remedy without a measurement, and why: it need not or cannot be tried, changed nothing, or failed. */
export interface NotTriedRow {
  remedy: string;
  title: string;
  why: string;
  failed: boolean;
}

/** The trial of a run; `rows` is empty, and `headline` says so, where there was none. */
export interface TriedPage {
  ref: RunRef;
  headline: string;
  command: string;
  device: string;
  baseline_ns: number | null;
  best: string[];
  best_gain_percent: number | null;
  best_low_percent: number | null;
  best_high_percent: number | null;
  best_verdict: string;
  patch: string;
  by_hand: string[];
  rows: TriedRow[];
  sets: TriedRow[];
  not_tried: NotTriedRow[];
  seeds_differ: string;
  seconds: number | null;
  notes: string[];
}

/** The verdict on one recording, which any page about it shows. */
export interface TrustPage {
  ref: RunRef;
  verdict: TrustLevel;
  reasons: TrustReasonText[];
}

/** One of the two runs; `step_text` gives the source of its step and the recorder's overhead. */
export interface CompareSide {
  ref: RunRef;
  title: string;
  precision: string;
  model: string;
  device: string;
  range: SelectedRange;
  step_text: string;
}

/** Batch sizes that differ; where `recorded` is false only their ratio is known, from the input dims. */
export interface CompareBatches {
  base: number;
  candidate: number;
  recorded: boolean;
  speedup_per_sample: number | null;
}

/** A percentage of both runs, None where unknown. */
export interface CompareBoth {
  base: number | null;
  candidate: number | null;
}

/**
 * Where one run's time is, in percent of its GPU time (of its ops' CPU time where a run has no GPU).
 *
 * `matched` has a counterpart in the other run, `unmatched` has none and `unlinked` was launched by no recorded
 * op. `matched_of_model` is matched over all but casts and GradScaler's work, which only one precision has.
 */
export interface CompareShares {
  total_ns: number;
  matched: number | null;
  casts: number | null;
  scaler: number | null;
  compiled: number | null;
  unmatched: number | null;
  unlinked: number | null;
  matched_of_model: number | null;
}

/** The shares of both runs. */
export interface CompareSharesOfBoth {
  base: CompareShares;
  candidate: CompareShares;
}

/**
 * One bar of the waterfall, per iteration: time of the step without the profiler, exclusive of the other buckets.
 *
 * The buckets of a side sum to its step, to the nanosecond; the recorder's overhead is in none. `low_ms` to
 * `high_ms` is the 95 % interval of the difference, None where a run has a single iteration; `noise` whether 0
 * lies in it. `base_outside_ns` and `candidate_outside_ns` are outside all ops of the page: Python between ops,
 * views, work that no op launched.
 */
export interface CompareBucket {
  key: string;
  base_outside_ns: number;
  candidate_outside_ns: number;
  base_ms: number;
  candidate_ms: number;
  difference_ms: number;
  label: string;
  base_ns: number;
  candidate_ns: number;
  difference_ns: number;
  low_ms: number | null;
  high_ms: number | null;
  noise: boolean | null;
}

/**
 * One measure of both runs; `ratio` is a / b for times (above 1: b is faster), None where either is unknown.
 *
 * `gain` is the factor by which b is better, above 1 for better with any measure: a / b where lower is better and
 * b / a where higher is. None where neither is better, a side is unknown or the divisor is 0.
 */
export interface CompareMetric {
  key: string;
  label: string;
  unit: "bytes" | "count" | "joules" | "ns" | "per_second" | "percent" | "watts";
  a: number | null;
  b: number | null;
  ratio: number | null;
  gain: number | null;
  better: "" | "higher" | "lower";
}

/** Kernel time per iteration of one family of kernels. */
export interface CompareKernelFamily {
  family: string;
  a_ns: number;
  b_ns: number;
  a_calls: number;
  b_calls: number;
  a_tensor_core_ns: number;
  b_tensor_core_ns: number;
}

/**
 * The ops of one module itself, without the modules inside it; "" for ops outside all modules. Where the runs are
 * of two frameworks, with those modules inside it that only one of them names.
 *
 * Times are sums over its ops, per iteration, None where a run has none of them; `status` says whether only one run
 * has the module. Precisions are those of the op with most time, roofs means of its ops that have one, weighted by
 * time.
 */
export interface CompareModule {
  module: string;
  status: Status;
  ops: number;
  a_ns: number | null;
  b_ns: number | null;
  difference_ns: number;
  low_ns: number | null;
  high_ns: number | null;
  noise: boolean | null;
  speedup: number | null;
  change_ns: number;
  change_percent: number | null;
  a_precision: string;
  b_precision: string;
  a_kernels: number | null;
  b_kernels: number | null;
  a_roof_percent: number | null;
  b_roof_percent: number | null;
  a_buckets: Record<string, number>;
  b_buckets: Record<string, number>;
}

/**
 * One op of both runs, times per iteration. An op that only one run has carries None on the other side.
 *
 * `basis` of the page is the time that `difference_ns` (b - a) and `speedup` (a / b) are of: GPU time where both
 * runs have a GPU, else CPU time; `low_ns` to `high_ns` is the 95 % interval of the difference, `noise` whether
 * 0 lies in it. `how` is the way of matching, `reason` the cause of a missing side. `a_buckets` and
 * `b_buckets` are by the clock; `change_ns` is the difference of their sums, and `change_percent` its share of
 * the change of the step. `a_roof_percent` is how much of its roofline ceiling the op reached. `listed_in` is the
 * row of the modules that it counts to.
 */
export interface CompareOp {
  id: string;
  name: string;
  role: Role;
  a_ns: number | null;
  b_ns: number | null;
  difference_ns: number | null;
  speedup: number | null;
  change_percent: number | null;
  a_using_tc: Verdict;
  b_using_tc: Verdict;
  a_precision: string;
  b_precision: string;
  a_kernels: number | null;
  b_kernels: number | null;
  a_roof_percent: number | null;
  b_roof_percent: number | null;
  reason: Reason;
  op_type: string;
  module: string;
  b_module: string;
  listed_in: string;
  direction: Direction;
  dims: string;
  how: How;
  a_id: string | null;
  b_id: string | null;
  low_ns: number | null;
  high_ns: number | null;
  noise: boolean | null;
  change_ns: number;
  a_cast_ns: number | null;
  b_cast_ns: number | null;
  a_buckets: Record<string, number>;
  b_buckets: Record<string, number>;
}

/** One measure of the step: as forecast and as measured (ms), and the forecast's error. */
export interface ForecastCheckPart {
  key: string;
  label: string;
  predicted_ms: number;
  measured_ms: number;
  error_percent: number | null;
}

/**
 * Kernel time of one op of the base per iteration (ms), casts left out.
 *
 * `measured_ms` is that in the candidate, None if the op is missing there. `error_percent` is how much longer than
 * measured the forecast is. `precision` is that of its kernels in the forecast, "" if unchanged.
 */
export interface ForecastCheckOp {
  id: string;
  name: string;
  module: string;
  op_type: string;
  direction: Direction;
  before_ms: number;
  predicted_ms: number;
  measured_ms: number | null;
  error_ms: number | null;
  error_percent: number | null;
  precision: string;
}

/**
 * The forecast from the base alone, compared with the candidate; times per step in ms.
 *
 * `step_ms` is the candidate's step without the profiler, `step_low_ms` to `step_high_ms` its interval;
 * `estimated` is True if it was not measured. `outcome` is its position relative to the forecast, considering both
 * intervals. `ops` are the first of `total_rows`, by falling error.
 */
export interface ForecastCheckPanel {
  precision: string;
  headline: string;
  outcome: "longer" | "shorter" | "within";
  outcome_text: string;
  base_ms: number;
  predicted_ms: number;
  low_ms: number;
  high_ms: number;
  step_ms: number;
  step_low_ms: number;
  step_high_ms: number;
  recorded_ms: number;
  estimated: boolean;
  error_percent: number;
  limited_by: string;
  limit_text: string;
  note: string;
  parts: ForecastCheckPart[];
  ops: ForecastCheckOp[];
  total_rows: number;
}

/**
 * A saving that a rule predicted for the base, and the measured one (ns per step).
 *
 * `realised_low_ns` to `realised_high_ns` is the 95 % interval from the two steps, None if unknown.
 */
export interface RealisedSavingRow {
  rule: string;
  title: string;
  change: string;
  low_ns: number;
  expected_ns: number;
  high_ns: number;
  realised_ns: number;
  realised_low_ns: number | null;
  realised_high_ns: number | null;
  estimated: boolean;
  outcome: "broken" | "kept" | "less" | "more" | "shared";
  text: string;
}

/** `forecast` is None if none applies to the two runs; if one applies but fails, `refusal` gives the reason. */
export interface PredictionCheck {
  forecast: ForecastCheckPanel | null;
  refusal: string;
  savings: RealisedSavingRow[];
}

/**
 * `a` is the base, `b` the candidate; everything is per iteration, so that ranges of other lengths compare.
 *
 * `base_ms` and `candidate_ms` are the steps without the profiler; `base_step` and `candidate_step` give their
 * sources. `speedup_low` to `speedup_high` is the 95 % interval of the speedup, `noise` whether it holds 1.
 * `different_models` is whether the runs train different ones: the speedup is then the ratio of two steps, and no
 * page states it. `warnings` limit the answer, `notes` do not.
 * `matched_gpu_time_percent` is `CompareShares.matched_of_model`, None where a run has no GPU. `batches` is None
 * where the batch sizes are the same, or unknown. `modules` are the first of `total_modules`; `reason_texts` has
 * the ops' reasons in words. `promises` compares predicted with measured savings, None without a prediction.
 */
export interface ComparePage {
  a: CompareSide;
  b: CompareSide;
  headline: string;
  different_models: boolean;
  across_frameworks: boolean;
  explanation: string[];
  basis: "cpu" | "gpu";
  base_ms: number;
  candidate_ms: number;
  base_step: StepFigures;
  candidate_step: StepFigures;
  step_difference_ns: number;
  speedup: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  noise: boolean | null;
  batches: CompareBatches | null;
  matched_gpu_time_percent: CompareBoth;
  shares: CompareSharesOfBoth;
  buckets: CompareBucket[];
  metrics: CompareMetric[];
  a_categories: Slice[];
  b_categories: Slice[];
  families: CompareKernelFamily[];
  modules: CompareModule[];
  total_modules: number;
  ops: CompareOp[];
  total_rows: number;
  reason_texts: Record<string, string>;
  promises: PredictionCheck | null;
  warnings: string[];
  notes: string[];
}

/** A finding in a cell: the problem, the change, the saving per step (None: no estimate). */
export interface RunAdvice {
  rule: string;
  severity: string;
  problem: string;
  change: string;
  saving_ns: number | null;
  saving_percent: number | null;
}

/**
 * One run, per iteration; None is unknown, and so is an empty text.
 *
 * `step_ns` is the step without the profiler, `step_low_ns` to `step_high_ns` its interval and `step_source`
 * its source, as in `StepFigures.source`, `step_words` the same in words. `recorded_ns` is the mean recorded
 * iteration, `deviation_ns` the standard deviation of these. `precision_key` is what most matrix work was computed
 * in, the same in AMP and with half parameters; it gives the colour. `base` names its base, its own for a base; if
 * it is "", `no_base` gives the reason. `changes` are the facts in which it differs from the base. `low` to
 * `high` is the interval of `speedup`. `advice` is the first finding.
 */
export interface RunRow {
  ref: RunRef;
  model: string;
  precision: string;
  batch_size: number | null;
  step_ns: number;
  speedup: number | null;
  change: Change;
  base: string;
  changes: string[];
  samples_per_second: number | null;
  recorded_ns: number;
  step_words: string;
  gpu_utilization: number | null;
  tensor_core_utilization: number | null;
  tensor_core_share: number | null;
  peak_memory_bytes: number | null;
  joules_per_step: number | null;
  joules_per_sample: number | null;
  flops: number | null;
  launches: number | null;
  advice: RunAdvice | null;
  workers: number | null;
  gpu: string;
  precision_key: string;
  gpus: number;
  iterations: number;
  step_low_ns: number;
  step_high_ns: number;
  step_source: string;
  deviation_ns: number | null;
  no_base: string;
  low: number | null;
  high: number | null;
  by_samples: boolean;
  peak_memory_of: string;
  watts: number | null;
}

/** A run whose profile cannot be read. */
export interface FailedRun {
  run: string;
  why: string;
}

/** `done` of `total` runs have been read; the page asks again until all are. */
export interface ManyRunsPage {
  headline: string;
  note: string;
  base: string;
  done: number;
  total: number;
  rows: RunRow[];
  total_rows: number;
  failed: FailedRun[];
}

/**
 * A model's figures before or after, per iteration; None is unknown.
 *
 * `step_ns` is the step without the profiler, `step_source` its source, `step_words` the same in words.
 * `recorded_ns` is the mean recorded iteration, `deviation_ns` the standard deviation of these.
 */
export interface ModelSide {
  ref: RunRef;
  precision: string;
  gpu_utilization: number | null;
  tensor_core_utilization: number | null;
  step_ns: number;
  step_source: string;
  step_words: string;
  recorded_ns: number;
  deviation_ns: number | null;
  samples_per_second: number | null;
  peak_memory_bytes: number | null;
  problems: string[];
}

/**
 * One model at one batch size on one GPU.
 *
 * `after` is its fastest run with mixed precision, None where none was recorded; `changes` are the facts besides
 * the precision in which the two differ. `best` names the fastest run; `next` is its first finding whose remedy
 * the recorded runs have not tried; `recommendation` says both in words.
 */
export interface ModelRow {
  model: string;
  batch_size: number | null;
  gpu: string;
  before: ModelSide | null;
  after: ModelSide | null;
  changes: string[];
  speedup: number | null;
  low: number | null;
  high: number | null;
  change: Change;
  best: string;
  next: RunAdvice | null;
  recommendation: string;
}

/** `rows` by model and batch size. A model of which no run is in FP32, TF32 or mixed precision has none. */
export interface ByModelPage {
  headline: string;
  done: number;
  total: number;
  rows: ModelRow[];
  total_rows: number;
  failed: FailedRun[];
}

/** A value that may be chosen. */
export interface SweepOption {
  key: string;
  label: string;
}

/**
 * A point of a line; `position` is an index of `SweepPage.positions`.
 *
 * `estimated` is True if the value depends on an estimated step.
 */
export interface SweepMark {
  position: number;
  ref: RunRef;
  value: number;
  estimated: boolean;
}

/**
 * A line, named by the facts in which the lines differ. Where these hold the precision, `precision_key` is what
 * it was computed in, as in `RunRow`; it gives the colour.
 */
export interface SweepCurve {
  label: string;
  precision_key: string;
  marks: SweepMark[];
}

/** A run that is in no line, and why. */
export interface SweepLeftOut {
  run: string;
  why: string;
}

/**
 * `positions` are the values of the fact in order, `ordered` says whether they are numbers.
 *
 * `common` are the facts that all lines share. `done` of `total` runs have been read; the page asks again until
 * all are.
 */
export interface SweepPage {
  headline: string;
  done: number;
  total: number;
  over: string;
  over_label: string;
  overs: SweepOption[];
  measure: string;
  measure_label: string;
  measures: SweepOption[];
  unit: SweepUnit;
  kernel_group: string;
  kernel_groups: SweepOption[];
  op: string;
  ops: SweepOption[];
  ordered: boolean;
  positions: string[];
  curves: SweepCurve[];
  common: string[];
  notes: string[];
  left_out: SweepLeftOut[];
  failed: FailedRun[];
}

/** A kernel, copy or set that an op launched: launches and time (ns) per iteration; `cast` marks casts. */
export interface CompareKernel {
  name: string;
  ns: number;
  calls: number;
  uses_tc: Verdict;
  precision: string;
  short_name: string;
  cast: boolean;
}

/** One op of both runs with its launches before and after; `reason_text` explains a missing side. */
export interface CompareOpDetail {
  op: CompareOp;
  reason_text: string;
  a_kernels: CompareKernel[];
  b_kernels: CompareKernel[];
}

/**
 * One trace in the run's directory.
 *
 * `name` is relative to that directory, `path` absolute on the machine that TensorBoard runs on; `version`
 * distinguishes a file from one that replaced it. `copy` is a trace that was rewritten for the PyTorch Profiler tab;
 * `of_profile` is True if the profile was made from it.
 */
export interface TraceFile {
  name: string;
  path: string;
  size_bytes: number;
  version: string;
  copy: boolean;
  of_profile: boolean;
}

/**
 * What to choose in the PyTorch Profiler tab to see this profile there.
 *
 * `span` is None where the worker has one trace. `reads` is "copy" where the tab finds a trace that it
 * understands, "original" where it finds what torch wrote, of which it reads no device times; `remedy` is the
 * command that makes the copy.
 */
export interface PytorchTab {
  run: string;
  worker: string;
  span: number | null;
  reads: TabTrace;
  remedy: string;
}

/** `files`: those of this profile first; `missing` explains a missing trace, and what to do. */
export interface TraceLinks {
  ref: RunRef;
  files: TraceFile[];
  missing: string | null;
  pytorch_tab: PytorchTab | null;
}

/** The answer of each route. */
export interface Routes {
  /** The recorded runs. */
  runs: RunIndex;
  /** Where the time of a step goes. */
  overview: Overview;
  /** The ops of the model. */
  ops: OpsPage;
  /** The types of the ops. */
  op_types: OpTypesPage;
  /** Op types, their ops and the kernels of these: the icicle of op types. */
  work_tree: WorkTree;
  /** One op, op type, kernel or module: kernels, shapes, launches, time by iteration. */
  work_detail: WorkDetail;
  /** The modules of the model. */
  modules: ModulesPage;
  /** The kernels, of all ops or of some. */
  kernels: KernelsPage;
  /** Launches and idle time of the GPU. */
  launches: LaunchesPage;
  /** One iteration, its longest events, what the others look like from afar. */
  timeline: TimelinePage;
  /** Up to 20,000 of the other events. */
  timeline_events: TimelineEventsPage;
  /** An event: its op, its launch, what is around it. */
  timeline_event: TimelineEvent;
  /** Where the text, op, op type or kernel runs. */
  timeline_matches: TimelineMatches;
  /** Ops that can use Tensor Cores, and why some do not. */
  tensor_cores: TensorCoresPage;
  /** Ops against what the GPU can reach. */
  roofline: RooflinePage;
  /** Memory of a device over time. */
  memory: MemoryPage;
  /** What a training takes of a GPU's memory in another configuration, and what fits. */
  plan: PlanPage;
  /** All ranks of a run: the job's step, who delays whom, what repairs would win. */
  distributed: DistributedPage;
  /** The job against others: what changed, and how the training scales. */
  other_jobs: OtherJobsPage;
  /** A step of several ranks on aligned clocks. */
  rank_lines: RankLinesPage;
  /** The energy of a step, where it goes, and what other configurations would take. */
  energy: EnergyPage;
  /** Ops that could be the key node. */
  key_nodes: KeyNodesPage;
  /** Ops, kernels, modules, rules and reports with these words in their names. */
  search: SearchPage;
  /** The ops, kernels and modules that belong to one. */
  related: Related;
  /** A report, as `tb-dlprof report` has it. */
  report: ReportPage;
  /** Findings and the rules behind them. */
  advice: AdvicePage;
  /** What `tb-dlprof try` measured with the run as its baseline. */
  tried: TriedPage;
  /** How far the figures can be trusted. */
  trust: TrustPage;
  /** Two runs, op by op. */
  compare: ComparePage;
  /** All runs, each against its base. */
  many_runs: ManyRunsPage;
  /** Each model before and after mixed precision. */
  by_model: ByModelPage;
  /** A figure of many runs over one fact in which they differ. */
  sweep: SweepPage;
  /** One op of two runs. */
  compare_op: CompareOpDetail;
  /** The step in another precision. */
  forecast: ForecastPage;
  /** The trace files in the run's directory. */
  trace_links: TraceLinks;
}

/** Parameters with a prefix, as in "a.run". */
export type Prefixed<Prefix extends string, Query> = {
  [Name in keyof Query as `${Prefix}.${Name & string}`]: Query[Name];
};

/** Parameters of every route: `offset` is how many rows of its table the page has already. */
export interface AnyQuery {
  /** Rows of its table that the page has already. */
  offset?: number | null;
}

/** A profile as it was recorded: by default of the newest session the lowest rank, of that the last cycle. */
export interface ProfileQuery extends AnyQuery {
  /** Profiling cycle; the last one by default. */
  cycle?: number | null;
  /** Rank; the lowest one by default. */
  rank?: number | null;
  /** Session: one start of the training; the newest one by default. */
  session?: string | null;
  /** The run. */
  run: string;
}

/**
 * A range of a profile's iterations, by default all: indices `first` to `last`, both inclusive.
 *
 * `key_node` is an op, annotation or module that cuts the recording into iterations in place of its steps.
 */
export interface RangeQuery extends ProfileQuery {
  /** Index of the first iteration to aggregate, counted from 0. */
  first?: number | null;
  /** Index of the last iteration to aggregate, inclusive. */
  last?: number | null;
  /** Op that separates iterations. */
  key_node?: string | null;
}

/** Parameters of the route `work_detail`. */
export interface WorkDetailQuery extends RangeQuery {
  /** Kind of the item. */
  kind: SubjectKind;
  /** Id of an op or kernel, name of an op type or key of a module. */
  id: string;
}

/** Parameters of the route `kernels`. */
export interface KernelsQuery extends RangeQuery {
  /** Id of an op. */
  op?: string | null;
  /** Name of an op type. */
  op_type?: string | null;
  /** Key of a module. */
  module?: string | null;
}

/** Parameters of the route `timeline`. */
export interface TimelineQuery extends RangeQuery {
  /** Index of the iteration; the one of median length by default. */
  iteration?: number | null;
}

/** Parameters of the route `timeline_events`. */
export interface TimelineEventsQuery extends RangeQuery {
  /** Index of the iteration; the one of median length by default. */
  iteration?: number | null;
  /** Number of a part of the events. */
  chunk?: number | null;
}

/** Parameters of the route `timeline_event`. */
export interface TimelineEventQuery extends RangeQuery {
  /** Index of the iteration; the one of median length by default. */
  iteration?: number | null;
  /** Id of an event. */
  id: string;
}

/** Parameters of the route `timeline_matches`. */
export interface TimelineMatchesQuery extends RangeQuery {
  /** Index of the iteration; the one of median length by default. */
  iteration?: number | null;
  /** A part of a name. */
  text?: string | null;
  /** Id of an op. */
  op?: string | null;
  /** Name of an op type. */
  op_type?: string | null;
  /** Id of a kernel. */
  kernel?: string | null;
}

/** Parameters of the route `memory`. */
export interface MemoryQuery extends RangeQuery {
  /** Number of a GPU, or cpu; the first recorded GPU by default. */
  device?: string | null;
}

/** Parameters of the route `plan`. */
export interface PlanQuery extends RangeQuery {
  /** Samples of a forward pass; those of the run by default. */
  batch_size?: number | null;
  /** Tokens of a sample. */
  sequence_length?: number | null;
  /** The first side of an image; the other grows alike. */
  image_size?: number | null;
  /** Autocast to FP16 or BF16, of an FP32 run; fp8 for matrix products, the rest BF16. */
  precision?: "bf16" | "fp16" | "fp8" | null;
  /** Without a suffix the default implementation on a GPU, which is foreach. */
  optimizer?: "adam" | "adam_fused" | "adam_loop" | "adamw" | "adamw_8bit" | "adamw_fused" | "adamw_loop" | "momentum" | "sgd" | null;
  /** Modules under activation checkpointing, with commas between; auto chooses the cheapest that fit. */
  checkpoint?: string | null;
  /** N more modules like MODULE; can be repeated. */
  layers?: string | null;
  /** Forward and backward passes of an optimizer step. */
  accumulate?: number | null;
  /** What goes to the CPU, with commas between: optimizer for its states, modules for their activations. */
  offload?: string | null;
  /** ReLUs that write to their input, or behind their max pooling. */
  relu?: "behind_pool" | "inplace" | null;
  /** How GPUs share the work, tp by tensor parallelism; each runs the batch size. */
  shard?: "ddp" | "fsdp2" | "tp" | "zero1" | "zero2" | "zero3" | null;
  /** Number of GPUs. */
  gpus?: number | null;
  /** As given to zero_grad. */
  set_to_none?: boolean | null;
  /** Of PyTorch's allocator. */
  expandable_segments?: boolean | null;
  /** GPU, in words of CUDA's name; that of the run by default. */
  gpu?: string | null;
  /** Memory of a GPU that is not named, such as 24GiB. */
  memory_bytes?: string | null;
}

/** Parameters of the route `other_jobs`. */
export interface OtherJobsQuery extends ProfileQuery {
  /** Other runs, a line each; the first is the base. */
  against: string;
}

/** Parameters of the route `rank_lines`. */
export interface RankLinesQuery extends ProfileQuery {
  /** Numbers of ranks. */
  ranks: string;
  /** Number of a step that all recorded; one in the middle by default. */
  step?: number | null;
}

/** Parameters of the route `energy`. */
export interface EnergyQuery extends RangeQuery {
  /** Price of a kWh, in any currency. */
  price_per_kwh?: number | null;
  /** Grams of CO2 of a kWh. */
  co2_per_kwh?: number | null;
  /** Steps of an epoch; the length of the DataLoader by default, where it was recorded. */
  steps_per_epoch?: number | null;
}

/** Parameters of the route `search`. */
export interface SearchQuery extends RangeQuery {
  /** Words in names. */
  text?: string | null;
}

/** Parameters of the route `related`. */
export interface RelatedQuery extends RangeQuery {
  /** Kind of the item. */
  kind: SubjectKind;
  /** Id of an op or kernel, name of an op type or key of a module. */
  id: string;
}

/** Parameters of the route `report`. */
export interface ReportQuery extends RangeQuery {
  /** A key of `REPORTS`. */
  name: string;
}

/** Parameters of the route `advice`. */
export interface AdviceQuery extends RangeQuery {
  /** Rules that the headline and the combined saving leave out. */
  set_aside?: string | null;
}

/** The base and the candidate: parameters "a.run" and so on. */
export interface CompareQuery extends AnyQuery, Prefixed<"a", RangeQuery>, Prefixed<"b", RangeQuery> {
}

/** Parameters of the route `many_runs`. */
export interface ManyRunsQuery extends AnyQuery {
  /** Base run for all; by default each model's FP32 run at its batch size. */
  base?: string | null;
}

/** Parameters of the route `sweep`. */
export interface SweepQuery extends AnyQuery {
  /** Fact on the x axis: model, precision, batch_size, workers, gpu, gpus, processes, compiled, channels_last, cudnn_benchmark, optimizer, torch; by default the one with most lines. */
  over?: string | null;
  /** Figure: step_time, samples_per_second, gpu_utilization, tensor_core_utilization, tensor_core_share, share, flops, flops_rate, memory, launches, energy, energy_per_sample, power; step_time by default, share of an op or a kernel group. */
  measure?: string | null;
  /** Show the share of this type of op, such as max_pool2d. */
  op?: string | null;
  /** Direction of the op: forward or backward; both by default. */
  direction?: string | null;
  /** Show the share of these kernels, such as convolution.winograd or copy. */
  kernel_group?: string | null;
}

/** Parameters of the route `compare_op`. */
export interface CompareOpQuery extends CompareQuery {
  /** Id of an op. */
  id: string;
}

/** Parameters of the route `forecast`. */
export interface ForecastQuery extends RangeQuery {
  /** bf16 and fp16: autocast (fp16 with GradScaler); tf32: TF32 allowed; fp32: as recorded. */
  precision: Precision;
  /** Batch size; that of the run by default. */
  batch_size?: number | null;
  /** GPU, by the name that CUDA reports; that of the run by default. */
  gpu?: string | null;
}

/** Parameters of the route `trace`. */
export interface TraceQuery extends ProfileQuery {
  /** Name of a trace that `trace_links_of` listed. */
  name: string;
  /** As listed: another one means that it was written over. */
  version?: string | null;
}

/** The parameters of each route; what is left out or null is left to the server. */
export interface Queries {
  runs: AnyQuery;
  overview: RangeQuery;
  ops: RangeQuery;
  op_types: RangeQuery;
  work_tree: RangeQuery;
  work_detail: WorkDetailQuery;
  modules: RangeQuery;
  kernels: KernelsQuery;
  launches: RangeQuery;
  timeline: TimelineQuery;
  timeline_events: TimelineEventsQuery;
  timeline_event: TimelineEventQuery;
  timeline_matches: TimelineMatchesQuery;
  tensor_cores: RangeQuery;
  roofline: RangeQuery;
  memory: MemoryQuery;
  plan: PlanQuery;
  distributed: ProfileQuery;
  other_jobs: OtherJobsQuery;
  rank_lines: RankLinesQuery;
  energy: EnergyQuery;
  key_nodes: ProfileQuery;
  search: SearchQuery;
  related: RelatedQuery;
  report: ReportQuery;
  advice: AdviceQuery;
  tried: RangeQuery;
  trust: RangeQuery;
  compare: CompareQuery;
  many_runs: ManyRunsQuery;
  by_model: AnyQuery;
  sweep: SweepQuery;
  compare_op: CompareOpQuery;
  forecast: ForecastQuery;
  trace_links: ProfileQuery;
  trace: TraceQuery;
}

/** The pages of one run and a range, by their names in the address. */
export type RunPage = "overview" | "ops" | "op_types" | "modules" | "kernels" | "launches" | "timeline" | "tensor_cores" | "roofline" | "memory" | "plan" | "energy" | "advice" | "tried" | "trust";
