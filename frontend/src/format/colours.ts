/**
 * One colour per meaning, on every page. What a step consists of, its parts, a time category and a precision each have a colour that
 * nothing else has; what a figure divides otherwise (families of kernels, categories of memory ...) takes from the series `--c-s1` to `--c-s11`, a key the
 * same one in every figure of its kind. `styles/theme.css` holds the light and the dark shade of each custom property named
 * here; `colours.test.ts` checks that both are distinguishable, with any kind of colour vision.
 */

/** The exclusive time categories, in their order of precedence, which is that of every stack, and what the recorder added on top. */
export const CATEGORIES: Readonly<Record<string, string>> = {
  tensor_core: "--c-tensor-core",
  other_kernels: "--c-other-kernels",
  memory: "--c-memory",
  dataloader: "--c-dataloader",
  io: "--c-io",
  cpu: "--c-cpu",
  other: "--c-other",
  recorder: "--c-recorder",
};

/**
 * What a step consists of: on the Summary, in Compare and where a page says what the GPU waits for. What is also a time category has its
 * colour: the CPU launches work in "CPU", other idle time is "Other". Without a GPU it is the parts of a step.
 */
export const ACCOUNT: Readonly<Record<string, string>> = {
  tensor_core: "--c-tensor-core",
  other_compute: "--c-other-kernels",
  communication: "--c-communication",
  casts: "--c-casts",
  scaler: "--c-scaler",
  copies: "--c-memory",
  dataloader: "--c-dataloader",
  cpu_launch: "--c-cpu",
  python: "--c-python",
  idle: "--c-other",
};

/** The parts of a step: a colour is the part's on every page. */
export const PARTS: Readonly<Record<string, string>> = {
  forward: "--c-forward",
  backward: "--c-backward",
  optimizer: "--c-optimizer",
  dataloader: "--c-dataloader",
  other: "--c-other",
};

/** What something computed in. */
export const PRECISIONS: Readonly<Record<string, string>> = {
  fp16: "--c-fp16",
  bf16: "--c-bf16",
  tf32: "--c-tf32",
  "3xtf32": "--c-3xtf32",
  fp8: "--c-fp8",
  int8: "--c-int8",
  fp64: "--c-fp64",
  fp32: "--c-fp32",
};

const BY_KEY: Readonly<Record<string, string>> = {
  ...CATEGORIES,
  unknown: "--c-unknown",
  idle: "--c-idle",
  busy: "--c-busy",
};

/** Slices whose meaning depends on what they are a part of. */
export const BY_CONTEXT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  gpu_utilization: { using: "--c-busy" },
  tensor_core_efficiency: { using: "--c-tensor-core", not_using: "--c-other-kernels" },
  // Kernels on Tensor Cores by precision; FP32 there is 3xTF32.
  by_precision: { ...PRECISIONS, none: "--c-other-kernels" },
  ran_in: PRECISIONS,
  // Categories of allocated memory, not of time.
  memory: {
    allocated: "--c-s1",
    before: "--c-other",
    parameters: "--c-s10",
    buffers: "--c-s11",
    optimizer_state: "--c-s2",
    gradients: "--c-s1",
    activations: "--c-s5",
    casts: "--c-s8",
    activation_gradients: "--c-s6",
    temporary: "--c-s7",
    workspaces: "--c-s3",
    communication: "--c-s4",
    other: "--c-s9",
  },
  parts: PARTS,
  account: { ...ACCOUNT, ...PARTS },
  // Events of the timeline: ops by their part of the step, other calls by what they do, GPU work as elsewhere, gaps by their cause as in the account.
  timeline: {
    forward: "--c-forward",
    backward: "--c-backward",
    optimizer: "--c-optimizer",
    launch: "--c-cpu",
    wait: "--c-s3",
    copy: "--c-memory",
    runtime: "--c-s11",
    module: "--accent-soft",
    annotation: "--accent-soft",
    overhead: "--c-unknown",
    unknown_kernels: "--c-unknown",
    idle_dataloader: ACCOUNT["dataloader"]!,
    idle_cpu_launch: ACCOUNT["cpu_launch"]!,
    idle_python: ACCOUNT["python"]!,
    idle_other: ACCOUNT["idle"]!,
  },
  // What the step of a rank consists of, next to other ranks.
  job: {
    compute: "--c-s10",
    communication: "--c-communication",
    waiting: "--c-s4",
    bubble: "--c-s11",
    host: "--c-idle",
  },
  // When the work that ended a gap was launched: no cause of it.
  gap_kind: { host_wait: "--c-s6", kernel_wait: "--c-s9", other: "--c-s4" },
  // Families of kernels keep their colour from run to run.
  family: {
    convolution: "--c-s1",
    gemm: "--c-s2",
    attention: "--c-s3",
    normalization: "--c-s4",
    elementwise: "--c-s5",
    reduction: "--c-s6",
    pooling: "--c-s7",
    softmax: "--c-s8",
    transpose: "--c-s9",
    optimizer: "--c-s10",
    random: "--c-s11",
    copy: "--c-memory",
    set: "--c-memory",
    other: "--c-other",
  },
};

/** For what has no colour of its own, such as the lines of a sweep: no category and no precision. */
export const SERIES = [
  "--c-s1",
  "--c-s2",
  "--c-s9",
  "--c-s3",
  "--c-s4",
  "--c-s8",
  "--c-s10",
  "--c-s5",
  "--c-s6",
  "--c-s7",
] as const;

/** The custom property that colours the slice `key`; `index` decides among keys that have no meaning of their own. */
export function colourProperty(key: string, index = 0, context = ""): string {
  return BY_CONTEXT[context]?.[key] ?? BY_KEY[key] ?? SERIES[index % SERIES.length]!;
}

/** The same as a CSS value. */
export function colourOf(key: string, index = 0, context = ""): string {
  return `var(${colourProperty(key, index, context)})`;
}
