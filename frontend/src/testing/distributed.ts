import { filled } from "./filled";

/** Four ranks in two stages: rank 3 is late. */
export const distributed = filled("DistributedPage", {
  ref: { run: "resnet50/fp32", session: "s1", rank: 0, cycle: 0 },
  headline: "Rank 3 delays the others, because its GPU is slower: repairing it saves 20 ns of a step (18 to 22 ns).",
  world_size: 4,
  ranks: 4,
  verdict: {
    kind: "delays",
    rank: 3,
    cause: "slow_gpu",
    late_ns: 20,
    saving_ns: 20,
    saving_low_ns: 18,
    saving_high_ns: 22,
  },
  figures: {
    step_ns: 98_000_000,
    step_low_ns: 96_000_000,
    step_high_ns: 99_000_000,
    compute_percent: 71,
    balance_percent: 80,
    matched_percent: 100,
    clock_us: 1.5,
    simulated_error_percent: 0.4,
  },
  account: {
    rank: [0, 1, 2, 3],
    step_ns: [98, 98, 98, 98],
    compute_ns: [60, 60, 60, 80],
    transfer_ns: [10, 10, 10, 10],
    waiting_ns: [20, 20, 20, 0],
    bubble_ns: [0, 0, 0, 0],
    host_ns: [8, 8, 8, 8],
  },
  delays: [
    {
      rank: 3,
      caused_waiting_ns: 60,
      saving_ns: 20,
      saving_low_ns: 18,
      saving_high_ns: 22,
      cause: "slow GPU",
      why: "Its kernels take 33 % longer at equal shapes.",
      certain: true,
    },
  ],
  what_if: [{ change: "rank 3 as fast as the median", step_ns: 78, low_ns: 76, high_ns: 80, saved_percent: 20.4 }],
  collectives: [{ operation: "all-reduce", dimension: "dp", size: "16 to 64 MiB", verdict: "skew-bound" }],
  heat: {
    first: [0, 1, 2, 3],
    last: [0, 1, 2, 3],
    iterations: [5, 6],
    percent: [0, 0, 1, 0, null, 0, 30, 34],
    of_rank: [0, 0.5, 0, 32],
  },
  mesh: [
    { name: "pp", size: 2, place: [0, 0, 1, 1] },
    { name: "dp", size: 2, place: [0, 1, 0, 1] },
  ],
  notes: ["All 4 ranks were recorded."],
});

/** The same job against one of two GPUs, in which no rank was late. */
export const otherJobs = filled("OtherJobsPage", {
  base: "resnet50/amp",
  headline: "A step of resnet50/fp32 on 4 GPUs in place of 2 takes 98.00 ms, that of resnet50/amp 80.00 ms.",
  parts: [
    { part: "Compute", base_ns: 60, candidate_ns: 65, difference_ns: 5 },
    { part: "Waiting for ranks", base_ns: null, candidate_ns: null, difference_ns: null },
    { part: "Step", base_ns: 80, candidate_ns: 98, difference_ns: 18 },
  ],
  delays: [{ what: "new", rank: 3, cause: "slow GPU", base_saving_ns: null, saving_ns: 20 }],
  ranks: [{ rank: 0, base_ranks: "0", compute_ns: 5, waiting_ns: null, step_ns: 18 }],
  collectives: [{ operation: "all_reduce", base_calls: null, calls: 4, base_exposed_ns: null, exposed_ns: 13 }],
  scaling_headline: "Weak scaling (each GPU has the same work, by samples): 82 % efficiency.",
  scaling: [
    { job: "resnet50/amp", gpus: 2, efficiency_percent: 100 },
    { job: "resnet50/fp32", gpus: 4, efficiency_percent: 81.6 },
  ],
});
