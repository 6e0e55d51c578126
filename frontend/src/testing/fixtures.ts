/** Answers of every route, small but with each odd case: unknown numbers, an op of one side only, hostile names. */
import type { AdvicePage, ComparePage, Coverage, ForecastPage, KernelRow, KernelsPage, MixedPrecision, OpDetail, OpRow, OpsPage, Overview, RunIndex, RunRef, Slice, TensorCoresPage, TrustPage } from "../api/types";

export const ref: RunRef = { run: "resnet50/fp32", session: "s1", rank: 0, cycle: 0 };
const range = { first: 0, last: 9, total: 10, first_number: 3, last_number: 12, found_by: "profiler_step" };
const STEP_NS = 98_765_432;

const coverage: Coverage = {
  total_ns: 940_000_000,
  linked_ns: 810_000_000,
  orphan_ns: 120_000_000,
  unattributed_ns: 10_000_000,
  outside_ns: 0,
  linked_percent: 86.17,
};

const slices = (parts: [string, string, number | null][]): Slice[] => {
  const whole = parts.reduce((sum, [, , ns]) => sum + (ns ?? 0), 0);
  return parts.map(([key, label, ns]) => ({ key, label, value_ns: ns, percent: ns === null ? null : (100 * ns) / whole }));
};

const categories = (scale: number, tensorCore: number): Slice[] =>
  slices([
    ["tensor_core", "Tensor Cores", tensorCore * scale],
    ["other_kernels", "Other kernels", 61_000_000 * scale],
    ["memory", "Memory", 4_000_000 * scale],
    ["dataloader", "Dataloader", 12_000_000 * scale],
    ["io", "I/O", null],
    ["cpu", "CPU", 9_000_000 * scale],
    ["other", "Other", 2_000_000 * scale],
  ]);

export const runs: RunIndex = {
  plugin_version: "0.1.0",
  logdir: "runs",
  offset: 0,
  total: 5,
  runs: [
    { run: "resnet50/fp32", session: "s1", rank: 0, cycles: [0], model: "ResNet50", precision: "fp32", device: "NVIDIA H200", created_unix_ns: 1, iterations: 10, recorded_iteration_ns: STEP_NS },
    { run: "resnet50/amp", session: "s1", rank: 0, cycles: [0], model: "ResNet50", precision: "fp16", device: "NVIDIA H200", created_unix_ns: 2, iterations: 10, recorded_iteration_ns: 34_000_000 },
    { run: "vgg16/ddp", session: "a", rank: 0, cycles: [0, 1], model: "VGG16", precision: null, device: null, created_unix_ns: 3, iterations: null, recorded_iteration_ns: null },
    { run: "vgg16/ddp", session: "b", rank: 0, cycles: [0, 1], model: "VGG16", precision: null, device: null, created_unix_ns: 4, iterations: null, recorded_iteration_ns: null },
    { run: "vgg16/ddp", session: "b", rank: 1, cycles: [0, 1, 2], model: "VGG16", precision: null, device: null, created_unix_ns: 4, iterations: null, recorded_iteration_ns: null },
  ],
};

const TYPES = ["cudnn_convolution", "convolution_backward", "cudnn_batch_norm", "clamp_min_", "addmm", "max_pool2d_with_indices"];

const opRow = (index: number): OpRow => {
  const type = TYPES[index % TYPES.length]!;
  const eligible = type.includes("conv") || type === "addmm";
  return {
    id: `op${index}`,
    name: `layer${1 + (index % 4)}.${Math.floor(index / 4)}.conv${1 + (index % 3)}/aten::${type}`,
    module: `layer${1 + (index % 4)}.${Math.floor(index / 4)}.conv${1 + (index % 3)}`,
    op_type: `aten::${type}`,
    direction: type.includes("backward") ? "bprop" : index % 7 === 6 ? "" : "fprop",
    role: type.includes("backward") ? "backward" : "forward",
    calls: 10,
    cpu_total_ns: 1_200_000 + index * 3_000,
    cpu_self_ns: 300_000 + index * 1_000,
    gpu_ns: Math.round(180_000_000 / (index + 1)),
    gpu_percent: 21 / (index + 1),
    kernel_calls: 20,
    tc_eligible: eligible ? "yes" : "no",
    using_tc: eligible ? (index % 5 === 0 ? "unknown" : "no") : "no",
    precision: eligible ? "fp32" : "",
    shapes: "[[64, 256, 56, 56], [64, 256, 1, 1]]",
    dtypes: "float, float",
  };
};

export const opRows: OpRow[] = Array.from({ length: 320 }, (_, index) => opRow(index));
opRows[3] = { ...opRows[3]!, name: '=HYPERLINK("http://example.com")', gpu_ns: null, gpu_percent: null };
opRows[4] = { ...opRows[4]!, name: "<img src=x onerror=alert(1)>" };

export const trust: TrustPage = {
  ref,
  verdict: "fair",
  reasons: [
    { code: "recorder_overhead", severity: "fair", text: "A recorded step takes 98.8 ms, 1.3 times as long as one without the profiler." },
    { code: "step_timed", severity: "good", text: "The step was timed without the profiler over 20 steps: 76.0 ms." },
  ],
};

export const overview: Overview = {
  ref,
  title: "ResNet50, fp32, NVIDIA H200",
  headline: "The GPU works 74 % of each 98.8 ms step, 11 % on Tensor Cores, and waits for data 12 %.",
  trust: { verdict: trust.verdict, reasons: trust.reasons },
  step: { ms: STEP_NS / 1e6, low_ms: STEP_NS / 1e6 - 1, high_ms: STEP_NS / 1e6 + 1, source: "measured", recorded_ms: STEP_NS / 1e6 + 20 },
  step_words: "timed without the profiler; 119 ms while recorded",
  range,
  has_gpu: true,
  precision: {
    label: "AMP FP16 (autocast)",
    evidence: ["Matrix time: 90 % in FP16, 10 % in FP32.", "autocast wrapped 540 of 540 forward matrix ops."],
    disagreements: ['The run is called "resnet50/fp32", yet it ran in AMP FP16 (autocast).'],
    shares: slices([
      ["fp16", "FP16", 90_000_000],
      ["fp32", "FP32", 10_000_000],
    ]),
    regions: [{ name: "head/linear", precision: "FP32", time_ns: 10_000_000, percent: 10 }],
    regions_total: 1,
    loss_scaling: "yes",
  },
  numeric_health: {
    headline: "1 of 10 optimizer steps was skipped: a gradient was inf or NaN.",
    whole_recording: false,
    checked_steps: 10,
    skipped_steps: 1,
    skipped_iterations: [3],
    loss_scale: 4096,
    steps_since_change: null,
    loss_scales: [
      { cycle: 0, step: 14, scale: 65_536 },
      { cycle: 1, step: null, scale: 4096 },
    ],
  },
  summary: {
    wall_clock_ns: STEP_NS * 10,
    gpu_utilization_percent: 74.2,
    tensor_core_kernel_utilization_percent: 14.6,
    tensor_core_time_percent: 14.1,
    gpu_busy_ns: 732_000_000,
    total_iterations: 10,
    aggregated_iterations: 10,
    start_iteration: 3,
    stop_iteration: 12,
    average_iteration_ns: STEP_NS,
    iteration_deviation_ns: 1_200_000,
    step_low_ns: STEP_NS - 1_000_000,
    step_high_ns: STEP_NS + 1_000_000,
    step_source: "measured",
    recorded_iteration_ns: STEP_NS + 20_000_000,
    recorded_wall_clock_ns: (STEP_NS + 20_000_000) * 10,
    recorder_ns: 200_000_000,
    samples_per_second: 648.1,
    peak_memory_bytes: null,
    memory_bytes: 150_000_000_000,
  },
  categories: [
    ["tensor_core", "Tensor Cores", "A Tensor Core kernel runs on the GPU."],
    ["other_kernels", "Other kernels", "Another kernel runs and no Tensor Core kernel does."],
    ["memory", "Memory", "A copy or set runs on the GPU and no kernel does."],
    ["dataloader", "Dataloader", "The GPU is idle and the training thread waits in the DataLoader."],
    ["io", "I/O", "The CPU reads or writes files. PyTorch traces do not record it."],
    ["cpu", "CPU", "An op or CUDA call runs on the CPU and none of the above applies."],
    ["other", "Other", "None of the above."],
  ].map(([key, label, definition]) => ({ key: key!, label: label!, definition: definition!, recorded: key !== "io" })),
  gpu_utilization: slices([
    ["using", "Using", 732_000_000],
    ["idle", "Idle", 255_000_000],
  ]),
  resource_usage: categories(10, 10_765_432),
  parts: slices([
    ["forward", "Forward", 300_000_000],
    ["backward", "Backward", 600_000_000],
    ["optimizer", "Optimizer", 50_000_000],
    ["dataloader", "Data loading", 20_000_000],
    ["other", "Other", 106_543_200],
  ]),
  kernel_time: slices([
    ["tensor_core", "Tensor Core kernels", 107_000_000],
    ["other_kernels", "Other kernels", 610_000_000],
    ["memory", "Memory", 40_000_000],
  ]),
  tensor_core_efficiency: slices([
    ["using", "Using Tensor Cores", 88_000_000],
    ["not_using", "Eligible, not using", 480_000_000],
    ["unknown", "Eligible, unknown", 32_000_000],
  ]),
  iterations: Array.from({ length: 10 }, (_, index) => {
    const scale = index === 0 ? 1.6 : 1 + (index % 3) * 0.03;
    const parts = categories(scale, 10_765_432).map((slice) => (slice.value_ns === null ? null : Math.round(slice.value_ns)));
    const duration = parts.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    return { index, last: index, number: index + 3, last_number: index + 3, start_ns: index * STEP_NS, duration_ns: duration, shortest_ns: duration, longest_ns: duration, category_ns: parts, selected: true };
  }),
  bars_note: "",
  top_ops: opRows.slice(0, 10),
  gpus: [],
  system: [
    { group: "Machine", label: "GPU", value: "NVIDIA H200" },
    { group: "Machine", label: "SMs", value: "132" },
    { group: "Machine", label: "CPU", value: null },
    { group: "Software", label: "PyTorch", value: "2.11.0" },
    { group: "Software", label: "CUDA", value: "12.9" },
    { group: "Software", label: "NCCL", value: null },
    { group: "Model", label: "Model", value: "ResNet50" },
    { group: "Model", label: "Parameters", value: "25,557,032" },
    { group: "Precision", label: "Autocast", value: "off" },
    { group: "Precision", label: "TF32 matmul", value: "off" },
    { group: "Data", label: "Workers", value: "0" },
    { group: "Recording", label: "Iterations found by", value: "profiler step" },
  ],
  findings: [
    { id: "f1", rule: "amp", severity: "high", title: "Train with automatic mixed precision", saving_ns: 58_000_000, saving_percent: 58.7 },
    { id: "f2", rule: "dataloader_workers", severity: "medium", title: "Load data in worker processes", saving_ns: 11_000_000, saving_percent: 11.1 },
    { id: "f3", rule: "cudnn_benchmark", severity: "low", title: "Let cuDNN choose its algorithms by measuring", saving_ns: null, saving_percent: null },
  ],
  coverage,
  notes: [{ code: "orphans", text: "Kernels queued before the recording began have no launch in it.", count: 412 }],
};

export const overviewWithoutGpu: Overview = {
  ...overview,
  has_gpu: false,
  precision: { ...overview.precision, label: null, evidence: ["No matrix product, convolution or attention was recorded."], disagreements: [], shares: [], regions: [], regions_total: 0, loss_scaling: "unknown" },
  numeric_health: null,
  headline: "Each step takes 98.8 ms on the CPU; the largest part is CPU, 80 %.",
  summary: {
    ...overview.summary,
    gpu_utilization_percent: null,
    tensor_core_kernel_utilization_percent: null,
    gpu_busy_ns: null,
    samples_per_second: null,
    memory_bytes: null,
  },
  gpu_utilization: [],
  kernel_time: [],
  tensor_core_efficiency: [],
  top_ops: opRows.slice(0, 3).map((row) => ({ ...row, gpu_ns: null, gpu_percent: null })),
  findings: [],
  coverage: { total_ns: 0, linked_ns: 0, orphan_ns: 0, unattributed_ns: 0, outside_ns: 0, linked_percent: null },
  notes: [],
};

export const ops: OpsPage = {
  ref,
  headline: "320 ops ran; layer1.0.conv1/aten::cudnn_convolution takes the most GPU time, 21 %.",
  range,
  has_gpu: true,
  by_type: [{ key: "type:conv2d", label: "conv2d", value_ns: 900_000, percent: 100 }],
  rows: opRows,
  total_rows: 1400,
  coverage,
};

export const op: OpDetail = {
  ref,
  range,
  row: opRows[1]!,
  eligibility_reason: "A convolution with 256 input channels; Tensor Cores take FP32 only as TF32, which is off.",
  shapes: [
    { shapes: "[[64, 256, 56, 56], [64, 256, 1, 1]]", dtypes: "float, float", calls: 10, cpu_total_ns: 1_203_000, gpu_ns: 90_000_000 },
    { shapes: "", dtypes: "", calls: 10, cpu_total_ns: 1_203_000, gpu_ns: null },
  ],
  kernels: [
    { id: "k1", name: "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad>(Params)", short_name: "cutlass_tensorop_s1688dgrad", family: "convolution", tensor_core: "yes", precision: "tf32", rule: "tensorop in the name", calls: 10, total_ns: 60_000_000, average_ns: 6_000_000, percent: 66.7, bytes: null },
    { id: "k2", name: "Memset (Device)", short_name: "Memset (Device)", family: "memset", tensor_core: "no", precision: "", rule: "not a kernel", calls: 10, total_ns: 30_000_000, average_ns: 3_000_000, percent: null, bytes: 4096 },
  ],
  iterations: overview.iterations.map(({ index, number }) => {
    const gpu = 9_000_000 + index * 100_000;
    return { index, last: index, number, last_number: number, calls: 1, cpu_total_ns: 120_000, gpu_ns: gpu, shortest_ns: gpu, longest_ns: gpu };
  }),
  bars_note: "",
};

const kernelRow = (index: number): KernelRow => ({
  id: `k${index + 1}`,
  name: `sm90_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage${index}`,
  short_name: `sm90_xmma_fprop_implicit_gemm_f32f32_${index}`,
  kind: index % 9 === 8 ? "memcpy" : "kernel",
  family: ["convolution", "batch norm", "elementwise", "pooling", "gemm", "reduce", "copy"][index % 7]!,
  tensor_core: (["no", "yes", "unknown"] as const)[index % 3]!,
  precision: index % 3 === 1 ? "tf32" : "",
  rule: index % 3 === 1 ? "warpgroupsize in the name" : "ffma in the name",
  calls: 530,
  total_ns: Math.round(120_000_000 / (index + 1)),
  average_ns: Math.round(226_000 / (index + 1)),
  min_ns: 1_200,
  max_ns: 900_000,
  percent: 16 / (index + 1),
  occupancy_percent: index % 4 === 3 ? null : 37.5,
  grid: "784×1×1",
  block: "256×1×1",
  registers_per_thread: 168,
  shared_memory_bytes: 98_304,
  bytes: index % 9 === 8 ? 51_380_224 : null,
  ops: [{ id: "op1", name: opRows[1]!.name, total_ns: 60_000_000 }],
});

export const kernels: KernelsPage = {
  ref,
  headline: "Convolution kernels take 61 % of the GPU time, Tensor Core kernels 11 %. 48 kernels ran.",
  range,
  has_gpu: true,
  by_family: slices([
    ["convolution", "convolution", 465_000_000],
    ["batch norm", "batch norm", 130_000_000],
    ["elementwise", "elementwise", 90_000_000],
    ["pooling", "pooling", 32_000_000],
    ["memcpy", "memcpy", 40_000_000],
  ]),
  rows: Array.from({ length: 48 }, (_, index) => kernelRow(index)),
  total_rows: 48,
  coverage,
};

const TF32_OFF = "Its inputs are FP32; TF32 is switched off (torch.backends.cudnn.allow_tf32 is False).";

export const tensorCores: TensorCoresPage = {
  ref,
  headline: "Tensor Cores run for 14.6 % of the kernel time that could use them; 60 of 107 ops do not use them at all.",
  range,
  has_gpu: true,
  supported_precisions: ["FP16", "BF16", "TF32", "FP8", "INT8", "FP64"],
  utilization_percent: 14.6,
  eligible_ns: 600_000_000,
  using_ns: 88_000_000,
  not_using_ns: 480_000_000,
  unknown_ns: 32_000_000,
  by_precision: slices([
    ["tf32", "TF32", 88_000_000],
    ["none", "not on Tensor Cores", 480_000_000],
    ["unknown", "unknown", 32_000_000],
  ]),
  ops: opRows
    .filter((row) => row.tc_eligible === "yes")
    .slice(0, 60)
    .map((row) => ({
      id: row.id,
      name: row.name,
      module: row.module,
      op_type: row.op_type,
      direction: row.direction,
      using_tc: row.using_tc,
      precision: row.precision,
      calls: row.calls,
      gpu_ns: row.gpu_ns ?? 0,
      tc_ns: 0,
      non_tc_ns: row.gpu_ns ?? 0,
      unknown_ns: 0,
      utilization_percent: row.using_tc === "unknown" ? null : 0,
      tc_kernels: [],
      non_tc_kernels: ["sm90_xmma_fprop_implicit_gemm_f32f32"],
      dtypes: row.dtypes,
      shapes: row.shapes,
      unknown_kernels: [],
      possible_precisions: ["tf32", "fp16", "bf16"],
      reason: TF32_OFF,
      reasons: [
        {
          id: "fp32_tf32_off",
          label: "FP32, TF32 off",
          text: TF32_OFF,
          time_ns: row.gpu_ns ?? 0,
          shapes: row.shapes,
          saved_ns: row.gpu_ns,
          saved_low_ns: 0,
          saved_high_ns: row.gpu_ns,
          at_most_ns: null,
        },
      ],
      layout_ns: 12_000,
      helpers_ns: 0,
      saved_ns: row.gpu_ns,
      at_most_ns: 12_000,
      could_save_ns: (row.gpu_ns ?? 0) + 12_000,
      could_save: "estimate and at most" as const,
    })),
  total_rows: 107,
  by_reason: [
    { id: "fp32_tf32_off", label: "FP32, TF32 off", text: TF32_OFF, remark: false, ops: 60, time_ns: 480_000_000, percent: 80, saved_ns: 288_000_000, at_most_ns: null },
    { id: "layout", label: "changing layouts", text: "Ops on Tensor Cores turn NCHW into NHWC and back.", remark: true, ops: 1, time_ns: 32_000_000, percent: 5.3, saved_ns: null, at_most_ns: 31_000_000 },
  ],
  saving: { low_ns: 1_000_000, expected_ns: 2_000_000, high_ns: 4_000_000, percent: 20, derivation: "Kernels become 2.5 times as fast with TF32." },
  kernels: [
    { id: "k1", name: "sm90_xmma_fprop_implicit_gemm_f32f32", tensor_core: "no", precision: "", rule: "xmma-ffma", family: "convolution", calls: 10, total_ns: 480_000_000, percent: 80 },
  ],
  ineligible: [
    { op_type: "conv2d", id: "no_tensor_core_kernel", label: "no matrix product", text: "A depthwise convolution.", ops: 1, time_ns: 5_000_000 },
  ],
};

const NO_BF16 = "the NVIDIA T4 has no Tensor Cores for BF16.";

/** FP16 gains, TF32 does not, and the GPU has no BF16. */
export const mixedPrecision: MixedPrecision = {
  iterations: 10,
  choices: [
    { precision: "tf32", label: "TF32", change: "Allow TF32.", code: "allow()", refusal: "", forecast: forecastOf("tf32", 98, 1.008) },
    { precision: "fp16", label: "FP16 (autocast)", change: "Autocast.", code: "autocast()", refusal: "", forecast: forecastOf("fp16", 40, 2.47) },
    { precision: "bf16", label: "BF16 (autocast)", change: "Autocast.", code: "autocast()", refusal: NO_BF16, forecast: null },
  ],
};

export const forecast: ForecastPage = {
  ...forecastOf("fp16", 40, 2.47),
  ops: [
    { id: "op0", name: "layer1/conv2d", module: "layer1", op_type: "conv2d", direction: "fprop", measured_ms: 9, predicted_ms: 2, casts_ms: 0.5, precision: "fp16" },
    { id: "op1", name: "loss/cross_entropy", module: "loss", op_type: "cross_entropy", direction: "fprop", measured_ms: 1, predicted_ms: 1, casts_ms: 0, precision: "" },
  ],
};

function forecastOf(precision: string, ms: number, speedup: number): ForecastPage {
  return {
    ref,
    model: "ResNet50",
    gpu: "NVIDIA H200",
    precision,
    batch_size: 64,
    headline: `${precision.toUpperCase()} forecast: ${ms} ms a step.`,
    measured_step_ms: 98.8,
    unprofiled_step_ms: 98.8,
    predicted_step_ms: ms,
    low_ms: ms * 0.8,
    high_ms: ms * 1.2,
    speedup,
    speedup_low: speedup / 1.2,
    speedup_high: speedup / 0.8,
    limited_by: "gpu",
    limit_text: "the GPU's kernels set the pace",
    gpu_ms: ms - 1,
    gpu_before_ms: 97,
    cpu_ms: 12,
    casts: 40,
    casts_ms: 0.5,
    scaler_ms: 0,
    total_rows: 2,
    ops: [],
  };
}

export const advice: AdvicePage = {
  ref,
  title: "ResNet50, fp32, NVIDIA H200",
  headline: "Two changes should save 69 ms of each 98.8 ms step; a third cannot be estimated.",
  range,
  step: { ms: 98.8, low_ms: 97.3, high_ms: 100.3, source: "measured", recorded_ms: 104.2 },
  combined: { low_ns: 41_000_000, expected_ns: 60_000_000, high_ns: 70_000_000, percent: 60.7, findings: 2, added_up_ns: 69_000_000 },
  combined_text: "Added up they would be 69.0 ms.",
  findings: [
    {
      id: "f1",
      rule: "amp",
      severity: "high",
      title: "Train with automatic mixed precision",
      seen: "107 ops could use Tensor Cores and spend 480 ms per recording off them, in FP32.",
      readings: [
        { label: "Eligible time off the Tensor Cores", value: 80.1, unit: "percent", threshold: 20 },
        { label: "Eligible ops", value: 107, unit: "count", threshold: 1 },
        { label: "Memory in use", value: null, unit: "bytes", threshold: null },
      ],
      evidence: [
        { label: opRows[0]!.name, value_ns: 180_000_000, percent: 21, page: "ops", id: "op0" },
        { label: "sm90_xmma_fprop_implicit_gemm_f32f32", value_ns: 120_000_000, percent: null, page: "kernels", id: "k1" },
        { label: "somewhere new", value_ns: null, percent: null, page: "elsewhere", id: "x" },
      ],
      change: "Run the forward pass under autocast and scale the loss.",
      code: 'scaler = torch.amp.GradScaler("cuda")\nwith torch.autocast("cuda", dtype=torch.float16):\n    loss = criterion(model(images), labels)\nscaler.scale(loss).backward()',
      saving: { low_ns: 41_000_000, expected_ns: 58_000_000, high_ns: 66_000_000, percent: 58.7, derivation: "Replays the step with each eligible kernel at the rate that the GPU reaches in FP16." },
      saving_unknown_because: "",
      confirm: "Record the run again with AMP on and compare the two on the Compare page.",
      references: [
        { title: "PyTorch: Automatic Mixed Precision", url: "https://pytorch.org/docs/stable/amp.html" },
        { title: "not a link", url: "javascript:alert(1)" },
      ],
      confidence: "medium",
      peers: [{ tool: "DLProf", name: "AMP Detector" }],
    },
    {
      id: "f3",
      rule: "cudnn_benchmark",
      severity: "low",
      title: "Let cuDNN choose its algorithms by measuring",
      seen: "53 convolutions run and torch.backends.cudnn.benchmark is off.",
      readings: [{ label: "Convolution time", value: 61.2, unit: "percent", threshold: 10 }],
      evidence: [],
      change: "Set the flag once at the start.",
      code: "torch.backends.cudnn.benchmark = True",
      saving: null,
      saving_unknown_because: "What cuDNN would choose cannot be told from a recording.",
      confirm: "Record again with the flag set.",
      references: [],
      confidence: "medium",
      peers: [],
    },
  ],
  rules: [
    { rule: "amp", title: "Automatic mixed precision", topic: "Precision", outcome: "fired", why: "", looks_for: "FP32 where half precision would do.", ignore_when: "The model needs FP32." },
    { rule: "cudnn_benchmark", title: "cudnn.benchmark", topic: "Precision", outcome: "fired", why: "", looks_for: "Convolutions with the flag off.", ignore_when: "Shapes change." },
    { rule: "memory", title: "Memory nearly full", topic: "Memory", outcome: "not_applicable", why: "The peak memory was not recorded.", looks_for: "A peak close to the GPU's memory.", ignore_when: "" },
    { rule: "sync_copies", title: "Synchronous copies", topic: "Copies", outcome: "silent", why: "0.2 % of the step, below 2 %.", looks_for: "Copies that the CPU waits for.", ignore_when: "" },
    { rule: "broken", title: "A rule that failed", topic: "Copies", outcome: "failed", why: "division by zero", looks_for: "", ignore_when: "" },
  ],
  mixed_precision: mixedPrecision,
};

/** What the ops of a comparison have in common here. */
const PAIR = {
  dims: "",
  how: "module",
  reason: "",
  low_ns: null,
  high_ns: null,
  noise: null,
  change_ns: 0,
  change_percent: null,
  a_cast_ns: 0,
  b_cast_ns: 0,
  a_roof_percent: null,
  b_roof_percent: null,
  a_buckets: {},
  b_buckets: {},
  b_module: "",
  role: "other",
} as const;

const bucketTimes = (base: number, candidate: number) => ({
  base_ns: base,
  candidate_ns: candidate,
  difference_ns: candidate - base,
  base_outside_ns: 0,
  candidate_outside_ns: 1_000,
  base_ms: base / 1e6,
  candidate_ms: candidate / 1e6,
  difference_ms: (candidate - base) / 1e6,
  low_ms: null,
  high_ms: null,
  noise: null,
});

export const compare: ComparePage = {
  a: { ref, title: "ResNet50, fp32", precision: "fp32", model: "ResNet50", device: "NVIDIA H200", range, step_text: "timed without the profiler" },
  b: { ref: { ...ref, run: "resnet50/amp" }, title: "ResNet50, fp16", precision: "fp16", model: "ResNet50", device: "NVIDIA H200", range, step_text: "estimated; recorded 60.0 ms, of which the recorder added 26.0 ms" },
  headline: "A step of resnet50/amp takes 34.0 ms where resnet50/fp32 takes 98.8 ms: 2.9 times as fast.",
  explanation: ["The speedup lies between 2.85 and 2.96 (95 %, from how well both steps are known)."],
  basis: "gpu",
  base_ms: STEP_NS / 1e6,
  candidate_ms: 34,
  base_step: { ms: STEP_NS / 1e6, low_ms: 97.5, high_ms: 100.5, source: "measured", recorded_ms: 101 },
  candidate_step: { ms: 34, low_ms: 30, high_ms: 38, source: "simulated", recorded_ms: 60 },
  step_difference_ns: 34_000_000 - STEP_NS,
  speedup: 2.905,
  speedup_low: 2.85,
  speedup_high: 2.96,
  noise: false,
  batches: { base: 64, candidate: 128, recorded: true, speedup_per_sample: 5.81 },
  matched_gpu_time_percent: { base: 99.2, candidate: 98 },
  shares: {
    base: { total_ns: 90_000_000, matched: 99.2, casts: 0, scaler: 0, compiled: 0, unmatched: 0.8, unlinked: 0, matched_of_model: 99.2 },
    candidate: { total_ns: 28_000_000, matched: 91.1, casts: 6.8, scaler: 0, compiled: 0, unmatched: 2.1, unlinked: 0, matched_of_model: 97.7 },
  },
  buckets: [
    { key: "tensor_core", label: "Tensor Core kernels", ...bucketTimes(8_800_000, 11_500_000) },
    { key: "other_compute", label: "Other kernels", ...bucketTimes(STEP_NS - 8_800_000, 20_000_000) },
    { key: "communication", label: "Communication", ...bucketTimes(0, 0) },
    { key: "casts", label: "Casts", ...bucketTimes(0, 1_900_000) },
    { key: "idle", label: "Other idle time", ...bucketTimes(0, 600_000), noise: true },
  ],
  metrics: [
    { key: "step_time", label: "Step time", unit: "ns", a: STEP_NS, b: 34_000_000, ratio: 2.905, gain: 2.905, better: "lower" },
    { key: "gpu_utilization", label: "GPU utilization", unit: "percent", a: 74.2, b: 61, ratio: 1.216, gain: 0.822, better: "higher" },
    { key: "samples", label: "Samples per second", unit: "per_second", a: 648.1, b: 1882, ratio: 0.344, gain: 2.904, better: "higher" },
    { key: "memory", label: "Peak memory", unit: "bytes", a: null, b: 9_000_000_000, ratio: null, gain: null, better: "lower" },
    { key: "kernels", label: "Kernels per iteration", unit: "count", a: 812, b: 1290, ratio: 0.629, gain: null, better: "" },
  ],
  a_categories: categories(1, 10_765_432),
  b_categories: categories(0.3, 40_000_000),
  families: [
    { family: "convolution", a_ns: 46_500_000, b_ns: 12_000_000, a_calls: 160, b_calls: 160, a_tensor_core_ns: 8_800_000, b_tensor_core_ns: 11_500_000 },
    { family: "batch norm", a_ns: 13_000_000, b_ns: 7_000_000, a_calls: 106, b_calls: 106, a_tensor_core_ns: 0, b_tensor_core_ns: 0 },
    { family: "cast", a_ns: 0, b_ns: 1_900_000, a_calls: 0, b_calls: 161.5, a_tensor_core_ns: 0, b_tensor_core_ns: 0 },
  ],
  ops: [
    ...opRows.slice(0, 40).map((row) => ({
      ...PAIR,
      id: `pair-${row.id}`,
      name: row.name,
      module: row.module,
      b_module: row.module,
      op_type: row.op_type,
      direction: row.direction,
      role: row.role,
      a_buckets: { other_compute: row.gpu_ns ?? 0 },
      b_buckets: { tensor_core: Math.round((row.gpu_ns ?? 0) / 3) },
      a_id: row.id,
      b_id: row.id,
      a_ns: row.gpu_ns,
      b_ns: row.gpu_ns === null ? null : Math.round(row.gpu_ns / 3),
      difference_ns: row.gpu_ns === null ? null : Math.round(-row.gpu_ns * 0.667),
      speedup: row.gpu_ns === null ? null : 3,
      a_precision: "fp32",
      b_precision: "fp16",
      a_using_tc: row.using_tc,
      b_using_tc: row.tc_eligible,
      a_kernels: 2,
      b_kernels: 3,
    })),
    { ...PAIR, id: "pair-cast", how: "", reason: "casts", b_buckets: { casts: 1_900_000 }, name: "aten::to", module: "", op_type: "aten::to", direction: "", a_id: null, b_id: "cast", a_ns: null, b_ns: 1_900_000, difference_ns: 1_900_000, speedup: null, a_precision: "", b_precision: "fp16", a_using_tc: "unknown", b_using_tc: "no", a_kernels: null, b_kernels: 161 },
  ],
  modules: [
    {
      module: opRows[0]!.module,
      status: "",
      ops: 2,
      a_ns: 9_000_000,
      b_ns: 3_000_000,
      difference_ns: -6_000_000,
      low_ns: -6_100_000,
      high_ns: -5_900_000,
      noise: false,
      speedup: 3,
      change_ns: -6_000_000,
      change_percent: 9.3,
      a_precision: "fp32",
      b_precision: "fp16",
      a_kernels: 2,
      b_kernels: 3,
      a_roof_percent: 40,
      b_roof_percent: null,
      a_buckets: { other_compute: 9_000_000 },
      b_buckets: { tensor_core: 3_000_000 },
    },
  ],
  total_modules: 1,
  total_rows: 41,
  reason_texts: { casts: "casts of mixed precision" },
  promises: null,
  warnings: ["The runs were recorded with different batch sizes (64 and 128): times per step do not compare like with like."],
};
