/** Keys pressed on the bars of iterations in, the marked range out. */
import type { IterationRange } from "../../state/profile";

/** From where the mark began to where it is now; either can be the larger. */
export interface Marked {
  from: number;
  to: number;
}

export function spanOf({ from, to }: Marked): IterationRange {
  return { first: Math.min(from, to), last: Math.max(from, to) };
}

/**
 * The mark after a key, null for a key that means nothing here. The first arrow marks the bar at `first`, the first of those
 * that are selected now; with Shift only the end moves.
 */
export function movedBy(
  key: string,
  extend: boolean,
  marked: Marked | null,
  first: number,
  total: number,
): Marked | null {
  const at = marked?.to ?? Math.max(0, first);
  const step: Record<string, number> = {
    ArrowLeft: marked ? at - 1 : at,
    ArrowRight: marked ? at + 1 : at,
    Home: 0,
    End: total - 1,
  };
  const wanted = step[key];
  if (wanted === undefined || total === 0) return null;
  const to = Math.max(0, Math.min(total - 1, wanted));
  return { from: extend ? (marked?.from ?? at) : to, to };
}
