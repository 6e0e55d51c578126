/** One sentence on how much of the GPU time the tables explain; nothing for a recording without GPU time. */
import type { Coverage } from "../api/types";
import { Defined } from "./Term";
import { formatNs } from "../format/duration";
import { formatPercent } from "../format/number";

/** The sentence for `coverage`, or null when there is no GPU time to explain. */
export function coverageSentence(coverage: Coverage): string | null {
  if (coverage.total_ns === 0) return null;
  const rest = [
    coverage.orphan_ns > 0 && `${formatNs(coverage.orphan_ns)} was launched before the recording began`,
    coverage.unattributed_ns > 0 && `${formatNs(coverage.unattributed_ns)} cannot be traced to an op`,
    coverage.outside_ns > 0 && `${formatNs(coverage.outside_ns)} was launched outside every iteration`,
  ].filter(Boolean);
  const share = coverage.linked_percent === null ? "An unknown share" : formatPercent(coverage.linked_percent);
  const text = `${share} of the ${formatNs(coverage.total_ns)} of GPU time in this recording is linked to an op`;
  return rest.length > 0 ? `${text}; ${rest.join(", ")}.` : `${text}.`;
}

export function CoverageLine({ coverage }: { coverage: Coverage }) {
  const text = coverageSentence(coverage);
  return text ? (
    <p class="coverage" data-testid="coverage">
      <Defined text={text}>
        {coverage.linked_percent === null ? "An unknown share" : formatPercent(coverage.linked_percent)} of GPU time is
        linked to ops
      </Defined>
    </p>
  ) : null;
}
