import { filled } from "./filled";

export const energy = filled("EnergyPage", {
  ref: { run: "resnet50/fp32", session: "s", rank: 0, cycle: 0 },
  headline: "A step takes 18.7 J at 568 W.",
  range: { first: 0, last: 9, total: 10, first_number: 5, last_number: 14, found_by: "profiler_step" },
  joules_per_step: 18.7,
  low_joules: 18.4,
  high_joules: 19,
  joules_per_sample: 0.292,
  watts: 568,
  idle_watts: 118.9,
  idle_percent: 20.9,
  power_limit_watts: 700,
  residual_percent: -4.2,
  parts: [
    { kind: "Products in FP32", joules: 12.1, percent: 64.7 },
    { kind: "At rest", joules: 3.9, percent: 20.9 },
  ],
  modules: [
    { path: "", joules: 14.8, percent: 79.1 },
    { path: "layer1.<b>0</b>", joules: 2.5, percent: 13.4 },
  ],
  ops: [{ id: "c1", name: "conv1/conv2d", direction: "forward", joules: 0.64, percent: 3.4, watts: 480 }],
  total_ops: 1,
  choices: [
    { precision: "as recorded", batch_size: 64, step_ms: 33, joules_per_step: 18.7, joules_per_sample: 0.292 },
    { precision: "TF32", batch_size: 64, step_ms: null, joules_per_step: null, why: "it computes in FP16." },
  ],
  epoch: { steps: 5004, processes: 1, hours: 0.046, kwh: 0.026, cost: null, co2_grams: 9.88 },
});
