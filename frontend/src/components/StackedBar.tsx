/** One horizontal bar of slices, drawn to a scale shared with its neighbours; widths are relative to `scale_ns`. */
import type { Slice } from "../api/types";
import { colourOf } from "../format/colours";
import { formatNs } from "../format/duration";

export function StackedBar({ slices, scaleNs, context = "" }: { slices: Slice[]; scaleNs: number; context?: string }) {
  return (
    <div class="stacked-bar" aria-hidden="true">
      {slices.map((slice, index) =>
        slice.value_ns ? (
          <span
            key={slice.key}
            style={{ width: `${(slice.value_ns / scaleNs) * 100}%`, background: colourOf(slice.key, index, context) }}
            title={`${slice.label}: ${formatNs(slice.value_ns)}`}
          />
        ) : null,
      )}
    </div>
  );
}

export const sumNs = (slices: readonly Slice[]): number =>
  slices.reduce((sum, slice) => sum + (slice.value_ns ?? 0), 0);
