/** What the sums next to it are: means per step, or totals of how many iterations. */
import type { SelectedRange } from "../api/types";
import { useIterations } from "../components/sums";
import { stepsOf } from "../state/shownRange";

export function unitText(range: SelectedRange, iterations: number): string {
  const count = stepsOf(range);
  if (range.found_by === "none") return "total of the recording";
  if (count === 1) return "1 iteration";
  return iterations === 1 ? `total of ${count} iterations` : `per step, mean of ${count}`;
}

export function UnitNote({ range, more = "" }: { range: SelectedRange; more?: string }) {
  return (
    <span class="muted small">
      {unitText(range, useIterations())}
      {more}
    </span>
  );
}
