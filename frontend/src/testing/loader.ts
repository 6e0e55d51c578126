import { filled } from "./filled";

export const loader = filled("LoaderPage", {
  ref: { run: "resnet50/fp32", session: "s", rank: 0, cycle: 0 },
  headline: "With 2 workers the training waits for its batch in 60 % of its time.",
  unknown: "",
  waiting_percent: 60,
  batches: 96,
  workers_now: 2,
  workers_advised: 5,
  start_method: "fork",
  stages: [
    { key: "items", stage: "Read items", where: "worker", batch_ns: 40e6, lanes: 2, per_second: 50, limits: true },
    {
      key: "train",
      stage: "Train",
      where: "training process",
      batch_ns: 8e6,
      lanes: 1,
      per_second: 125,
      limits: false,
    },
  ],
  workers: [{ workers: 5, step_ns: 8.2e6, low_ns: 8e6, high_ns: 9e6, wait_ns: 0.2e6, note: "advised" }],
  transforms: [{ name: "Crop <b>slow</b>", sample_ns: 4e6, percent: 80 }],
  hints: ["Use 5 workers: the step takes 8.20 ms."],
});
