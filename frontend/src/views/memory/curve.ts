/** What the curve of allocated memory is drawn with: its lines, its axis, its marks. */
import type { MemoryIteration } from "../../api/types";
import type { Plot } from "../../components/chart/Chart";

/** An SVG path through values that each hold until the next moment, the last one until the window ends. */
export function stepsPath(plot: Plot, time: readonly number[], values: readonly number[], stop: number): string {
  const steps = values.map(
    (value, at) => `V${plot.y.at(value).toFixed(1)}H${plot.x.at(time[at + 1] ?? stop).toFixed(1)}`,
  );
  return values.length > 0
    ? `M${plot.x.at(time[0]!).toFixed(1)} ${plot.y.at(values[0]!).toFixed(1)}${steps.join("")}`
    : "";
}

/** The last moment that began at or before a time; the first where none did. */
export function momentAt(time: readonly number[], at: number): number {
  let [low, high] = [0, time.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (time[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
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
