/** A Roofline page with one op of each kind: known, and of unknown FLOPs. */
import type { RooflinePage } from "../api/types";

export const roofline: RooflinePage = {
  ref: { run: "resnet50/fp32", session: "s", rank: 0, cycle: 0 },
  headline: "3.11 TFLOP an iteration; matrix kernels reach 27 % of what NVIDIA H200 can in the precision they ran in.",
  range: { first: 0, last: 9, total: 10, first_number: 5, last_number: 14, found_by: "profiler_step" },
  has_gpu: true,
  gpu: "NVIDIA H200",
  source: "NVIDIA H200 Tensor Core GPU data sheet",
  bytes_per_second: 4.8e12,
  roofs: [
    { precision: "fp16", tensor_cores: true, label: "FP16", flops_per_second: 989.5e12 },
    { precision: "fp32", tensor_cores: false, label: "FP32 without Tensor Cores", flops_per_second: 67e12 },
  ],
  calls: 20,
  unknown_calls: 10,
  flops: 31_100_000_000_000,
  flops_per_iteration: 3_110_000_000_000,
  flops_per_second: 32.1e12,
  matrix_ns: 148_000_000,
  unknown_ns: 1_000_000,
  unknown_percent: 0.7,
  percent_of_ceiling: 27,
  ops: [
    {
      id: "conv1f", name: "conv1/conv2d", module: "conv1", op_type: "conv2d", direction: "fprop", calls: 10, gpu_ns: 147_000_000,
      flops: 31_100_000_000_000, bytes: 24_000_000_000, flops_per_second: 32.1e12, flops_per_byte: 192, precision: "fp32", tensor_cores: "no",
      ceiling_flops_per_second: 67e12, percent_of_ceiling: 47.9, bound: "compute", possible_precision: "fp16", percent_of_possible: 3.2,
      shapes: "64×3×224×224, 64×3×7×7", dtypes: "fp32",
    },
    {
      id: "rnnf", name: "rnn/lstm", module: "rnn", op_type: "lstm", direction: "fprop", calls: 10, gpu_ns: 1_000_000,
      flops: null, bytes: null, flops_per_second: null, flops_per_byte: null, precision: "", tensor_cores: "unknown",
      ceiling_flops_per_second: null, percent_of_ceiling: null, bound: "unknown", possible_precision: "", percent_of_possible: null,
      shapes: "", dtypes: "",
    },
  ],
  total_rows: 2,
};
