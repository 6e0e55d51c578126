/** One horizontal bar of slices, drawn to a scale shared with its neighbours; widths are relative to `scaleNs`. */
import type { Slice } from "../api/types";
import { colourOf } from "../format/colours";
import { formatNs } from "../format/duration";
import { useIterations } from "./sums";

interface StackedBarProps {
  slices: Slice[];
  scaleNs: number;
  context?: string;
  /** The slices are sums over the selected iterations. */
  sums?: boolean;
}

export function StackedBar({ slices, scaleNs, context = "", sums = false }: StackedBarProps) {
  const iterations = useIterations();
  return (
    <div class="stacked-bar" aria-hidden="true">
      {slices.map((slice, index) =>
        slice.value_ns ? (
          <span
            key={slice.key}
            style={{ width: `${(slice.value_ns / scaleNs) * 100}%`, background: colourOf(slice.key, index, context) }}
            title={`${slice.label}: ${formatNs(sums ? slice.value_ns / iterations : slice.value_ns)}`}
          />
        ) : null,
      )}
    </div>
  );
}

export const sumNs = (slices: readonly Slice[]): number =>
  slices.reduce((sum, slice) => sum + (slice.value_ns ?? 0), 0);
