/**
 * One colour per meaning, on every page. The hues follow Okabe and Ito's colour-blind safe set; `styles/theme.css` holds the
 * light and the dark shade of each custom property named here.
 */
const BY_KEY: Record<string, string> = {
  tensor_core: "--c-tensor-core",
  tensor_cores: "--c-tensor-core",
  using_tc: "--c-tensor-core",
  using_tensor_cores: "--c-tensor-core",
  other_kernels: "--c-other-kernels",
  other_kernel: "--c-other-kernels",
  not_using_tc: "--c-other-kernels",
  not_using_tensor_cores: "--c-other-kernels",
  memory: "--c-memory",
  memory_kernels: "--c-memory",
  memcpy: "--c-memory",
  memset: "--c-memory",
  dataloader: "--c-dataloader",
  io: "--c-io",
  cpu: "--c-cpu",
  other: "--c-other",
  unknown: "--c-unknown",
  idle: "--c-idle",
  outside: "--c-idle",
  non_tensor_core: "--c-other-kernels",
  not_using: "--c-other-kernels",
  not_tensor_core: "--c-other-kernels",
};

/** Slices whose meaning depends on the donut they are in. */
const BY_CONTEXT: Record<string, Record<string, string>> = {
  gpu_utilization: { using: "--c-busy", busy: "--c-busy", used: "--c-busy", gpu: "--c-busy" },
  tensor_core_efficiency: { using: "--c-tensor-core", other: "--c-other-kernels" },
  kernel_time: { other: "--c-other-kernels" },
  resource_usage: {},
};

const SERIES = ["--c-s1", "--c-s2", "--c-s3", "--c-s4", "--c-s5", "--c-s6", "--c-s7", "--c-s8"];

/** The custom property that colours the slice `key`; `index` decides among keys that have no meaning of their own. */
export function colourProperty(key: string, index = 0, context = ""): string {
  return BY_CONTEXT[context]?.[key] ?? BY_KEY[key] ?? SERIES[index % SERIES.length]!;
}

/** The same as a CSS value. */
export function colourOf(key: string, index = 0, context = ""): string {
  return `var(${colourProperty(key, index, context)})`;
}
