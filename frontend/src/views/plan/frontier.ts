/** The points of memory against time in, their places in the picture out. Pure. */
import type { CheckpointRow } from "../../api/types";

export interface Place {
  /** Parts of the width and of the height, 0 to 1, from the left and from the top. */
  x: number;
  y: number;
}

/** What a point is at on the axis of time: its step (ms), or the number of modules where no step is known. */
export const costOf = (rows: readonly CheckpointRow[]): number[] =>
  rows.every(({ step_ms: step }) => step !== null)
    ? rows.map(({ step_ms: step }) => step!)
    : rows.map(({ modules }) => modules.length);

/** Each point's place; the memory axis begins at 0, so that heights compare. */
export function placesOf(rows: readonly CheckpointRow[]): Place[] {
  const costs = costOf(rows);
  const [least, most] = [Math.min(...costs), Math.max(...costs)];
  const highest = Math.max(...rows.map(({ peak_reserved_mb: mb }) => mb));
  return rows.map(({ peak_allocated_mb: mb }, index) => ({
    x: most > least ? (costs[index]! - least) / (most - least) : 0,
    y: highest > 0 ? 1 - mb / highest : 0,
  }));
}

/** The point next to a part of the width. */
export function nearest(places: readonly Place[], x: number): number {
  let found = 0;
  places.forEach((place, index) => {
    if (Math.abs(place.x - x) < Math.abs(places[found]!.x - x)) found = index;
  });
  return found;
}
