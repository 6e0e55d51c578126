/** An estimate with its interval, as a sentence and as a mark on a line from 0 to the top of the interval. */
import type { SavingItem } from "../../api/types";
import { exactNs, formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";

export function SavingBar({ saving }: { saving: SavingItem }) {
  const low = Math.min(0, saving.low_ns);
  const span = Math.max(saving.high_ns, 0) - low || 1;
  const place = (ns: number): string => `${((ns - low) / span) * 100}%`;
  return (
    <div class="saving">
      <p>
        <strong title={exactNs(saving.expected_ns)}>{formatNs(saving.expected_ns)}</strong> ({formatPercent(saving.percent)}),{" "}
        <span class="nowrap">
          between <strong>{formatNs(saving.low_ns)}</strong> and <strong>{formatNs(saving.high_ns)}</strong>.
        </span>
      </p>
      <div class="saving-line" aria-hidden="true">
        <span class="saving-interval" style={{ left: place(saving.low_ns), width: `${((saving.high_ns - saving.low_ns) / span) * 100}%` }} />
        <span class="saving-mark" style={{ left: place(saving.expected_ns) }} />
      </div>
      <div class="saving-scale muted small" aria-hidden="true">
        <span>{low < 0 ? formatNs(low) : "0"}</span>
        <span>{formatNs(saving.high_ns)}</span>
      </div>
      <p class="muted small">{saving.derivation}</p>
    </div>
  );
}
