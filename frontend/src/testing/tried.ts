import { filled } from "./filled";

export const tried = filled("TriedPage", {
  ref: { run: "resnet50/fp32", session: "s", rank: 0, cycle: 0 },
  headline: "TF32: a step takes 31.5 % less time (30.9 to 32.1 %).",
  command: "train.py --epochs 3",
  device: "NVIDIA H200",
  baseline_ns: 24e6,
  best: ["tf32"],
  best_gain_percent: 31.5,
  best_low_percent: 30.9,
  best_high_percent: 32.1,
  patch: "--- a/train.py\n+++ b/train.py\n",
  by_hand: ["tf32"],
  rows: [
    {
      remedy: "tf32",
      title: "TF32 <b>products</b>",
      before_ns: 24e6,
      after_ns: 16.44e6,
      gain_percent: 31.5,
      low_percent: 30.9,
      high_percent: 32.1,
      verdict: "within noise of the seed",
      verdict_text: "Losses differ by at most 0.2 %.",
      code: "torch.set_float32_matmul_precision('high')",
    },
  ],
  not_tried: [{ remedy: "compile", title: "torch.compile", why: "RuntimeError: no compiler", failed: true }],
  seconds: 95,
  notes: ["The kernel has no Landlock."],
});
