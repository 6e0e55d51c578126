/**
 * The aggregated iterations: the numbers of the first and the last, as under the bars of the Summary, in two fields that change them.
 * "All" goes back; dragging over the bars sets the same.
 */
import type { SelectedRange } from "../api/types";
import { useFile } from "../api/useResource";
import { useShortcut } from "../keys/useShortcut";
import { assign } from "../state/param";
import { rangeParam } from "../state/sharedParams";
import type { IterationRange } from "../state/profile";

/** Why an exported file offers no other iterations. */
export const WHOLE_ONLY =
  "This file holds the whole recording. Other iterations take the run itself, in TensorBoard or with tb-dlprof.";

interface RangeFieldsProps {
  range: SelectedRange;
  onChange: (range: IterationRange | null) => void;
  /** Distinguishes two of them. */
  label?: string;
}

export function RangeFields({ range, onChange, label = "Iterations" }: RangeFieldsProps) {
  const wholeOnly = useFile() !== null;
  if (range.total <= 1) return null;
  const all = range.first === 0 && range.last === range.total - 1;
  // As the training counts them; where it counts with gaps, by their place in the recording.
  const counted = range.last_number - range.first_number === range.last - range.first;
  const offset = counted ? range.first_number - range.first : 0;
  const change = (first: number, last: number): void => {
    if (!Number.isInteger(first) || !Number.isInteger(last)) return;
    const low = Math.max(0, Math.min(first, last, range.total - 1));
    const high = Math.min(range.total - 1, Math.max(first, last, 0));
    onChange(low === 0 && high === range.total - 1 ? null : { first: low, last: high });
  };
  const field = (name: string, value: number, apply: (value: number) => void) => (
    <input
      type="number"
      min={offset}
      max={offset + range.total - 1}
      value={offset + value}
      disabled={wholeOnly}
      aria-label={`${label}: ${counted ? "number" : "index"} of the ${name}`}
      data-testid={`range-${name}`}
      onChange={(event) => apply(event.currentTarget.valueAsNumber - offset)}
    />
  );
  return (
    <span class="range-picker" role="group" aria-label={label} title={wholeOnly ? WHOLE_ONLY : undefined}>
      <span
        data-tip={`The iterations that the page adds up, ${counted ? "numbered as the training counts them and as under the bars of the Summary" : `${range.first_number} to ${range.last_number}, by their place in the recording`}; both ends included. ${wholeOnly ? WHOLE_ONLY : ""}`}
        tabIndex={0}
        class="term"
        data-testid="range-numbers"
      >
        {label}
      </span>
      {field("first", range.first, (value) => change(value, range.last))}
      <span aria-hidden="true">–</span>
      {field("last", range.last, (value) => change(range.first, value))}
      <span class="muted">{range.total} recorded</span>
      {!all && (
        <button type="button" class="button button-small" onClick={() => onChange(null)} data-testid="range-all">
          All
        </button>
      )}
    </span>
  );
}

/** How bars of iterations are used. */
export function BarsHint() {
  return (
    <span class="muted small">
      {useFile() === null ? "drag to pick a range" : "all iterations: this file holds the whole recording"}
    </span>
  );
}

export function RangePicker({ range }: { range: SelectedRange }) {
  const several = range.total > 1;
  useShortcut("]", "Next iterations", "Iterations", several ? () => assign(rangeParam.to(stepped(range, 1))) : null);
  useShortcut("[", "Iterations before", "Iterations", several ? () => assign(rangeParam.to(stepped(range, -1))) : null);
  useShortcut("\\", "All iterations", "Iterations", several ? () => assign(rangeParam.to(null)) : null);
  return <RangeFields range={range} onChange={(next) => assign(rangeParam.to(next))} />;
}

/** As many iterations as now, one later or earlier; from all of them to the first or the last one. Stays within the recording. */
export function stepped(range: SelectedRange, by: 1 | -1): IterationRange {
  const last = range.total - 1;
  if (range.first === 0 && range.last === last) return by > 0 ? { first: 0, last: 0 } : { first: last, last };
  const move = range.first + by < 0 || range.last + by > last ? 0 : by;
  return { first: range.first + move, last: range.last + move };
}
