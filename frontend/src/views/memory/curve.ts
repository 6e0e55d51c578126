/** What the curve of allocated memory is drawn with: its points, its axis, its marks. */
import type { MemoryIteration } from "../../api/types";

/** Time and value per moment, and the last value once more where the window ends: it holds until then. */
export function momentsToDraw(time: readonly number[], values: readonly number[], stop: number): [number, number][] {
  const points = time.map((at, index): [number, number] => [at, values[index]!]);
  if (points.length > 0) points.push([stop, values[values.length - 1]!]);
  return points;
}

/** Per column the sum of it and those before it, moment by moment: the upper edges of stacked areas. */
export function stackedUp(columns: readonly (readonly number[])[]): number[][] {
  const tops: number[][] = [];
  for (const column of columns) {
    const below = tops[tops.length - 1];
    tops.push(column.map((value, at) => value + (below?.[at] ?? 0)));
  }
  return tops;
}

/** A power of two that fits three or four times into `highest`, so that the axis reads 512 MiB and not 537 MB. */
export function byteStep(highest: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, highest) / 4)));
}

/** The device's memory, where a line for it leaves the curve at least a third of the height; else null. */
export function drawnLimit(limit: number | null, highest: number): number | null {
  return limit !== null && highest > 0 && limit <= 3 * highest ? limit : null;
}

/** Every how many iterations one is labelled, so that the labels do not run into each other. */
export function labelledEvery(iterations: number): number {
  return Math.max(1, Math.ceil(iterations / 24));
}

/** Number of the iteration that a time after the start of the first lies in. */
export function iterationAt(iterations: readonly MemoryIteration[], time: number): number {
  let number = iterations[0]?.number ?? 0;
  for (const iteration of iterations) {
    if (iteration.start_ns > time) break;
    number = iteration.number;
  }
  return number;
}
