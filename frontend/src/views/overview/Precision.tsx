/** What the run computed in: the mode, what shows it, what was declared otherwise, and the ops that ran in something else. */
import type { PrecisionSummary } from "../../api/types";
import { Card } from "../../components/Card";
import { PartsBar } from "../../components/PartsBar";
import { Term } from "../../components/Term";
import { Text, Value } from "../../components/Value";

export function Precision({ precision }: { precision: PrecisionSummary }) {
  const { regions } = precision;
  return (
    <Card
      title={<Term of="precisionMode">Precision</Term>}
      testId="overview-precision"
      actions={<span class="muted small">whole recording</span>}
    >
      <p class="precision-label" data-testid="overview-precision-label">
        <Text value={precision.label} />
      </p>
      {precision.disagreements.map((sentence) => (
        <p key={sentence} class="precision-but">
          {sentence}
        </p>
      ))}
      {precision.shares.length > 1 && <PartsBar name="Precision" slices={precision.shares} context="ran_in" />}
      <ul class="precision-evidence muted">
        {precision.evidence.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
        <li>
          <Term of="lossScaling">Loss scaling</Term>: {precision.loss_scaling}.
        </li>
      </ul>
      {regions.length > 0 && (
        <details class="precision-regions">
          <summary>
            {precision.regions_total} {precision.regions_total === 1 ? "op" : "ops"} in another precision
          </summary>
          <ol>
            {regions.map((region) => (
              <li key={region.name}>
                <span class="precision-region">{region.name}</span>
                <span>{region.precision}</span>
                <Value value={region.percent} unit="percent" />
              </li>
            ))}
          </ol>
          {precision.regions_total > regions.length && (
            <p class="muted small">Those with most time; {precision.regions_total - regions.length} more.</p>
          )}
        </details>
      )}
    </Card>
  );
}
