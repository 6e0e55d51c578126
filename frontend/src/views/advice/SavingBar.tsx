/** An estimate with its interval and derivation: as a sentence, and as a mark on a line from 0 to the top of the interval. */
import type { SavingItem } from "../../api/types";
import { exactNs, formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { SavingLine, scaleOf } from "./SavingLine";

export function SavingBar({ saving }: { saving: SavingItem }) {
  const scale = scaleOf([saving]);
  return (
    <div class="saving">
      <p>
        <strong title={exactNs(saving.expected_ns)}>{formatNs(saving.expected_ns)}</strong> (
        {formatPercent(saving.percent)}),{" "}
        <span class="nowrap">
          between <strong>{formatNs(saving.low_ns)}</strong> and <strong>{formatNs(saving.high_ns)}</strong>.
        </span>
      </p>
      <SavingLine saving={saving} scale={scale} />
      <div class="saving-scale muted small" aria-hidden="true">
        <span>{scale.low < 0 ? formatNs(scale.low) : "0"}</span>
        <span>{formatNs(saving.high_ns)}</span>
      </div>
      <p class="muted small">{saving.derivation}</p>
    </div>
  );
}
