/**
 * One colour per meaning, on every page. The hues follow Okabe and Ito's colour-blind safe set; `styles/theme.css` holds the
 * light and the dark shade of each custom property named here.
 */
const BY_KEY: Record<string, string> = {
  tensor_core: "--c-tensor-core",
  other_kernels: "--c-other-kernels",
  memory: "--c-memory",
  dataloader: "--c-dataloader",
  io: "--c-io",
  cpu: "--c-cpu",
  other: "--c-other",
  unknown: "--c-unknown",
  idle: "--c-idle",
  // What the CPU does while the GPU is idle.
  busy: "--c-busy",
  synchronising: "--c-io",
  copying: "--c-memory",
  launching: "--c-s1",
  ops: "--c-cpu",
  python: "--c-s2",
};

/** Slices whose meaning depends on what they are a part of. */
const BY_CONTEXT: Record<string, Record<string, string>> = {
  gpu_utilization: { using: "--c-busy" },
  tensor_core_efficiency: { using: "--c-tensor-core", not_using: "--c-other-kernels" },
  // Shades of the Tensor Cores' green.
  by_precision: {
    fp16: "--c-tensor-core",
    bf16: "--c-tc-2",
    tf32: "--c-tc-3",
    fp8: "--c-tc-4",
    none: "--c-other-kernels",
  },
  // What an op computed in, on Tensor Cores but for fp32; "fp64" may be either.
  ran_in: {
    fp16: "--c-tensor-core",
    bf16: "--c-tc-2",
    tf32: "--c-tc-3",
    "3xtf32": "--c-s9",
    fp8: "--c-tc-4",
    int8: "--c-s5",
    fp64: "--c-s6",
    fp32: "--c-other-kernels",
  },
  // Categories of allocated memory, not of time.
  memory: {
    allocated: "--c-memory",
    before: "--c-other",
    activations: "--c-s1",
    gradients: "--c-s2",
    optimizer_state: "--c-s9",
    temporary: "--c-s5",
    other: "--c-s8",
  },
  parts: {
    forward: "--c-s1",
    backward: "--c-s2",
    optimizer: "--c-s10",
    dataloader: "--c-dataloader",
    other: "--c-other",
  },
  // Bars of the waterfall on the Compare page; without a GPU they are the parts of a step.
  waterfall: {
    other_compute: "--c-other-kernels",
    communication: "--c-s3",
    casts: "--c-s7",
    scaler: "--c-s8",
    copies: "--c-memory",
    cpu_launch: "--c-s1",
    idle: "--c-other",
    forward: "--c-s1",
    backward: "--c-s2",
    optimizer: "--c-s10",
  },
  gap_kind: { host_wait: "--c-s6", kernel_wait: "--c-s9", other: "--c-other" },
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

/** For what has no colour of its own; none of them is the colour of a category. */
const SERIES = ["--c-s8", "--c-s7", "--c-s6", "--c-s5", "--c-s4", "--c-s3", "--c-s2", "--c-s1"];

/** The custom property that colours the slice `key`; `index` decides among keys that have no meaning of their own. */
export function colourProperty(key: string, index = 0, context = ""): string {
  return BY_CONTEXT[context]?.[key] ?? BY_KEY[key] ?? SERIES[index % SERIES.length]!;
}

/** The same as a CSS value. */
export function colourOf(key: string, index = 0, context = ""): string {
  return `var(${colourProperty(key, index, context)})`;
}
