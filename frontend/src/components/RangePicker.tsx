/** The aggregated iterations: two numbers to type and "All" to go back. The chart on the Overview page sets the same. */
import type { SelectedRange } from "../api/types";
import type { IterationRange } from "../state/viewState";
import { useView } from "../state/store";

interface RangeFieldsProps {
  range: SelectedRange;
  onChange: (range: IterationRange | null) => void;
  label?: string;
}

export function RangeFields({ range, onChange, label = "Iterations" }: RangeFieldsProps) {
  if (range.total <= 1) return null;
  const all = range.first === 0 && range.last === range.total - 1;
  const change = (first: number, last: number): void => {
    if (!Number.isInteger(first) || !Number.isInteger(last)) return;
    const low = Math.max(0, Math.min(first, last, range.total - 1));
    const high = Math.min(range.total - 1, Math.max(first, last, 0));
    onChange(low === 0 && high === range.total - 1 ? null : { first: low, last: high });
  };
  const field = (name: string, value: number, apply: (value: number) => void) => (
    <input
      type="number"
      min={0}
      max={range.total - 1}
      value={value}
      aria-label={`${label}: ${name}`}
      data-testid={`range-${name}`}
      onChange={(event) => apply(event.currentTarget.valueAsNumber)}
    />
  );
  return (
    <span class="range-picker" role="group" aria-label={label}>
      <span data-tip="Indices of the iterations that the numbers add up, counted from 0, both ends included." tabIndex={0} class="term">
        {label}
      </span>
      {field("first", range.first, (value) => change(value, range.last))}
      <span aria-hidden="true">–</span>
      {field("last", range.last, (value) => change(range.first, value))}
      <span class="muted">of {range.total}</span>
      {!all && (
        <button type="button" class="button button-small" onClick={() => onChange(null)} data-testid="range-all">
          All
        </button>
      )}
    </span>
  );
}

export function RangePicker({ range }: { range: SelectedRange }) {
  const { set } = useView();
  return <RangeFields range={range} onChange={(next) => set({ range: next })} />;
}
