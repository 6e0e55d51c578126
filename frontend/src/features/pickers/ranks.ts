/** The ranks of one session, and which of them had the longest steps. Pure. */
import type { RunEntry } from "../../api/types";

export interface RankItem {
  rank: number;
  /** The mean recorded step. */
  stepNs: number | null;
}

export interface Slowest {
  rank: number;
  /** Longer than the median rank's step by so much. */
  percent: number;
}

/** Less than this apart, no rank is the slow one: steps of ranks that wait for each other are equally long. */
const WORTH_MARKING_PERCENT = 1;

/** The ranks of a session, in order. */
export function ranksOf(entries: readonly RunEntry[], run: string, session: string | null): RunEntry[] {
  const ranks = new Map<number, RunEntry>();
  for (const entry of entries) if (entry.run === run && entry.session === session) ranks.set(entry.rank, entry);
  return [...ranks.values()].sort((x, y) => x.rank - y.rank);
}

export function rankItems(entries: readonly RunEntry[], run: string, session: string | null): RankItem[] {
  return ranksOf(entries, run, session).map((entry) => ({ rank: entry.rank, stepNs: entry.recorded_iteration_ns }));
}

/** Null where the step of a rank is unknown, or where none stands out. */
export function slowestRank(items: readonly RankItem[]): Slowest | null {
  const steps = items.map((item) => item.stepNs);
  if (steps.length < 2 || steps.includes(null)) return null;
  const sorted = [...(steps as number[])].sort((x, y) => x - y);
  const median = sorted[Math.floor((sorted.length - 1) / 2)]!;
  const most = sorted[sorted.length - 1]!;
  const percent = median > 0 ? 100 * (most / median - 1) : 0;
  return percent < WORTH_MARKING_PERCENT ? null : { rank: items.find((item) => item.stepNs === most)!.rank, percent };
}
