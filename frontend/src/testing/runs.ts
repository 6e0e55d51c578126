/** Answers of the Runs page: a base, a faster run and one without a base; a model before and after; two lines. */
import type { ByModelPage, ManyRunsPage, RunRow, SweepPage } from "../api/types";

const ref = (run: string) => ({ run, session: "s", rank: 0, cycle: 0 });

const fp32: RunRow = {
  ref: ref("net/fp32"), model: "Net", precision: "FP32", precision_key: "fp32", batch_size: 32, workers: 8, gpu: "NVIDIA H200", gpus: 1,
  iterations: 10, step_ns: 20_000_000, step_low_ns: 19_700_000, step_high_ns: 20_300_000, step_source: "measured", step_words: "timed without the profiler", recorded_ns: 21_000_000, deviation_ns: 100_000, samples_per_second: 1600, base: "net/fp32", no_base: "", changes: [], speedup: null,
  low: null, high: null, by_samples: false, change: "unknown", gpu_utilization: 98, tensor_core_utilization: 0, tensor_core_share: 0,
  peak_memory_bytes: 2_000_000_000, peak_memory_of: "process", flops: 1e12, launches: 300,
  advice: { rule: "amp_not_used", severity: "high", problem: "Automatic mixed precision is not used", change: "Use autocast.", saving_ns: 9_000_000, saving_percent: 45 },
};

export const manyRuns: ManyRunsPage = {
  headline: "3 runs; 1 faster than their base.",
  note: "The interval of 95 % comes from the iterations.",
  base: "",
  done: 3,
  total: 3,
  rows: [
    fp32,
    {
      ...fp32, ref: ref("net/amp"), precision: "AMP BF16", precision_key: "bf16", step_ns: 10_000_000, step_low_ns: 9_000_000, step_high_ns: 11_000_000, step_source: "simulated", step_words: "estimated", recorded_ns: 15_000_000, deviation_ns: null, speedup: 2, low: 1.9, high: 2.1,
      change: "faster", changes: ["FP32 to AMP BF16"], advice: null, peak_memory_of: "iterations",
    },
    {
      ...fp32, ref: ref("unnamed"), model: "", precision: "", precision_key: "", base: "", no_base: "its model was not recorded", step_ns: 5_000_000,
      batch_size: null, samples_per_second: null, flops: null, advice: null,
    },
  ],
  total_rows: 3,
  failed: [{ run: "broken", why: "Run 'broken' cannot be shown: it is damaged." }],
};

export const byModel: ByModelPage = {
  headline: "1 model; mixed precision makes 1 of 1 faster, Net most: 2.00 times as fast.",
  done: 3,
  total: 3,
  rows: [
    {
      model: "Net", batch_size: 32, gpu: "NVIDIA H200",
      before: { ref: ref("net/fp32"), precision: "FP32", gpu_utilization: 98, tensor_core_utilization: 0, step_ns: 20_000_000, step_source: "measured", step_words: "timed without the profiler", recorded_ns: 21_000_000, deviation_ns: 100_000, samples_per_second: 1600, peak_memory_bytes: null, problems: [] },
      after: { ref: ref("net/amp"), precision: "AMP BF16", gpu_utilization: null, tensor_core_utilization: 61.5, step_ns: 10_000_000, step_source: "simulated", step_words: "estimated", recorded_ns: 15_000_000, deviation_ns: null, samples_per_second: 3200, peak_memory_bytes: null, problems: [] },
      changes: ["workers 8 to workers 4"], speedup: 2, low: 1.9, high: 2.1, change: "faster", best: "net/amp", next: null,
      recommendation: "Keep AMP BF16, the fastest recorded: 2.00 times as fast. No rule finds more to change.",
    },
  ],
  total_rows: 1,
  failed: [],
};

export const sweep: SweepPage = {
  headline: "Step time over batch size: 3 runs in 2 lines; 1 left out.",
  done: 4,
  total: 4,
  over: "batch_size",
  over_label: "batch size",
  overs: [{ key: "batch_size", label: "batch size" }, { key: "precision", label: "precision" }],
  measure: "step_time",
  measure_label: "Step time",
  measures: [{ key: "step_time", label: "Step time" }, { key: "share", label: "Share of the GPU time" }],
  unit: "ns",
  kernel_group: "",
  kernel_groups: [{ key: "convolution", label: "Convolutions, all" }],
  op: "",
  ops: [{ key: "conv2d bprop", label: "conv2d bprop" }],
  ordered: true,
  positions: ["8", "64"],
  curves: [
    { label: "FP32", marks: [{ position: 0, ref: ref("a"), value: 1_000_000, estimated: false }, { position: 1, ref: ref("b"), value: 5_000_000, estimated: false }] },
    { label: "AMP BF16", marks: [{ position: 1, ref: ref("c"), value: 2_000_000, estimated: true }] },
  ],
  common: ["Net"],
  notes: [],
  left_out: [{ run: "lone", why: "its batch size was not recorded" }],
  failed: [],
};
