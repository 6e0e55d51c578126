import { overview } from "./fixtures";
import { filled } from "./filled";

export const report = filled("ReportPage", {
  ref: overview.ref,
  range: overview.range,
  name: "kernel",
  title: "Kernels",
  question: "Which kernels take the time, and which ops launch them?",
  headline: "Convolution kernels take 61 % of the GPU time, Tensor Core kernels 11 %. 48 kernels ran.",
  reports: [
    {
      name: "kernel",
      title: "Kernels",
      question: "Which kernels take the time, and which ops launch them?",
      of_dlprof: true,
    },
    { name: "averages", title: "Torch's table", question: "What does prof.key_averages() say?", of_dlprof: false },
  ],
  columns: [
    { key: "kernel_name", label: "Kernel Name", unit: "text", verdict: false, meaning: "Its own name." },
    { key: "uses_tc", label: "Uses TC", unit: "text", verdict: true, meaning: "Whether it uses Tensor Cores." },
    {
      key: "total_gpu_time_ns",
      label: "Total GPU Time",
      unit: "ns",
      meaning: "Sum over all instances.",
    },
    {
      key: "occupancy_percent",
      label: "Occupancy (%)",
      unit: "percent",
      meaning: "Share of the warps.",
    },
    {
      key: "copied_or_set_bytes",
      label: "Copied or Set",
      unit: "bytes",
      meaning: "Bytes that it moved.",
    },
  ],
  rows: [
    ["gemm", "yes", 5_000_000, 38, null],
    ["<img src=x onerror=alert(1)>", null, 1_000, null, 2048],
    ["relu", "no", 2_000_000, 50, null],
    ["=1+1", "no", 3_000_000, 50, null],
  ],
  total_rows: 7080,
  notes: ["Parameters are empty: PyTorch's profiler does not record them."],
});

export const keyNodes = filled("KeyNodesPage", {
  ref: overview.ref,
  found_by: "profiler_step",
  iterations: 10,
  rows: [
    { key_node: "div_", id: "aaaa", name: "div_", direction: "", calls: 10 },
    { key_node: "conv1/conv2d", id: "bbbb", name: "conv1/conv2d", direction: "forward", calls: 10 },
    { key_node: "cccc", id: "cccc", name: "conv1/conv2d", direction: "backward", calls: 1 },
  ],
  total_rows: 3,
});
