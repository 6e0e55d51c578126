/** What a finding, or all together, should save per step: the number, its interval in words and as marks. */
import type { CombinedSaving, SavingItem } from "../../api/types";
import { exactNs, formatNs } from "../../format/duration";
import { formatInterval, formatJoules, formatPercent } from "../../format/number";
import { SavingLine, type Scale } from "./SavingLine";

/** A bound of an interval: a plain 0 rather than "0 ns", and a minus sign where the step may as well get longer. */
const bound = (ns: number): string => (ns === 0 ? "0" : formatNs(ns).replace("-", "−"));

/** At the least the GPU rested in the time that is saved, at the most it worked as on average. */
function Joules({ saving }: { saving: SavingItem | CombinedSaving }) {
  if (!("low_joules" in saving) || saving.low_joules === null || saving.high_joules === null) return null;
  return (
    <p class="muted small" data-testid="saving-joules">
      {formatInterval(saving.low_joules, saving.high_joules, formatJoules)}
    </p>
  );
}

interface PriceProps {
  saving: SavingItem | CombinedSaving | null;
  scale: Scale;
  /** The interval as marks alone. */
  brief?: boolean;
}

export function Price({ saving, scale, brief = false }: PriceProps) {
  if (saving === null) {
    return (
      <div class="price">
        <p class="price-amount missing">saving unknown</p>
      </div>
    );
  }
  const [low, high] = [bound(saving.low_ns), bound(saving.high_ns)];
  return (
    <div class="price">
      <p>
        <span class="hidden">saves </span>
        <strong class="price-amount" title={exactNs(saving.expected_ns)}>
          {formatNs(saving.expected_ns)}
        </strong>{" "}
        <span class="muted nowrap">a step ({formatPercent(saving.percent)})</span>
      </p>
      <SavingLine saving={saving} scale={scale} />
      <p class={brief ? "hidden" : "muted small"} title={`${exactNs(saving.low_ns)} to ${exactNs(saving.high_ns)}`}>
        {low === high ? low : `between ${low} and ${high}`}
      </p>
      <Joules saving={saving} />
    </div>
  );
}
