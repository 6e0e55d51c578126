/** A saving as a bar from 0 to its expected value, with its interval; lines with the same scale compare at a glance. */
import type { CombinedSaving, SavingItem } from "../../api/types";

/** From `low` (at most 0) to `high`, in ns. */
export interface Scale {
  low: number;
  high: number;
}

export type Interval = Pick<SavingItem | CombinedSaving, "low_ns" | "expected_ns" | "high_ns">;

/** The scale on which all of the savings have room. */
export function scaleOf(savings: (Interval | null)[]): Scale {
  const known = savings.filter((saving) => saving !== null);
  return {
    low: Math.min(0, ...known.map((saving) => saving.low_ns)),
    high: Math.max(0, ...known.map((saving) => saving.high_ns)),
  };
}

export function SavingLine({ saving, scale }: { saving: Interval; scale: Scale }) {
  const span = scale.high - scale.low || 1;
  const place = (ns: number): string => `${((ns - scale.low) / span) * 100}%`;
  return (
    <span class="saving-line" aria-hidden="true">
      <span
        class="saving-expected"
        style={{
          left: place(Math.min(0, saving.expected_ns)),
          width: `${(Math.abs(saving.expected_ns) / span) * 100}%`,
        }}
      />
      <span
        class="saving-interval"
        style={{ left: place(saving.low_ns), width: `${((saving.high_ns - saving.low_ns) / span) * 100}%` }}
      />
      {scale.low < 0 && <span class="saving-zero" style={{ left: place(0) }} />}
    </span>
  );
}
