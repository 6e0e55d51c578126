/** The account of each rank as rows: what a table, its bars and its files take. */
import type { JobAccount } from "../../api/types";

/** Parts of a rank's step, in the order of the bar. */
export const PARTS = [
  { key: "compute", title: "Compute", column: "compute_ns" },
  { key: "communication", title: "Exposed transfer", column: "transfer_ns" },
  { key: "waiting", title: "Waiting for ranks", column: "waiting_ns" },
  { key: "bubble", title: "Pipeline bubble", column: "bubble_ns" },
  { key: "host", title: "Host", column: "host_ns" },
] as const;

export interface RankRow {
  rank: number;
  stepNs: number;
  /** By the position in `PARTS`; null is unknown. */
  parts: (number | null)[];
}

export const rankRows = (account: JobAccount): RankRow[] =>
  account.rank.map((rank, index) => ({
    rank,
    stepNs: account.step_ns[index]!,
    parts: PARTS.map(({ column }) => account[column][index]!),
  }));
