import { filled } from "./filled";

const FITS = { capacity_mb: 149_291, verdict: "fits", peak_reserved_mb: 3984.6, smallest_limit_mb: 3722.7 };

export const plan = filled("PlanPage", {
  ref: { run: "resnet50/fp32", session: "s", rank: 0, cycle: 0 },
  headline: "Fits of 149.3 GB on the H200: tensors hold 3.44 GB at the peak.",
  range: { first: 0, last: 9, total: 10, first_number: 5, last_number: 14, found_by: "profiler_step" },
  gpu: "NVIDIA H200",
  gpu_names: ["L4"],
  batch_size: 64,
  fits: true,
  peak_allocated_mb: 3444,
  low_mb: 3982,
  high_mb: 3987,
  largest_batch: 2905,
  step_ms: 48.2,
  step_low_ms: 47.7,
  step_high_ms: 48.7,
  samples_per_second: 1327,
  ...FITS,
  unknown: { joules_per_step: "the energy of the GPU was not recorded." },
  reasons: ["Energy per step: the energy of the GPU was not recorded."],
  figures: [{ name: "peak reserved", mb: 3984.6, low_mb: 3982, high_mb: 3987, source: "the replay" }],
  held: [{ kind: "parameters", mb: 62.7 }],
  batches: [
    { ...FITS, batch_size: 64, peak_allocated_mb: 3444, step_ms: 48.2, samples_per_second: 1327 },
    { ...FITS, batch_size: 128, peak_allocated_mb: 6667, step_ms: null, samples_per_second: null },
  ],
  gpus: [{ ...FITS, gpu: "L4", batch_size: 64, largest_batch: 431, verdict: "does not fit", step_ms: null }],
  checkpoints: [
    { modules: [], peak_allocated_mb: 3444, peak_reserved_mb: 3984.6, step_ms: 48.2 },
    { modules: ["blocks.0"], peak_allocated_mb: 3152, peak_reserved_mb: 3691, step_ms: 49.8 },
  ],
  assumptions: ["One process has the GPU."],
});
