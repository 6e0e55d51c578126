/** The result of loss scaling: skipped steps, and the scale over the cycles of the recording. */
import type { LossScalePoint, NumericHealthPanel } from "../../api/types";
import { Card } from "../../components/Card";
import { number } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { formatCount } from "../../format/number";

export function NumericHealth({ health }: { health: NumericHealthPanel }) {
  const iterations = health.skipped_iterations.join(", ");
  return (
    <Card
      title={<Term of="numericHealth">Numeric health</Term>}
      testId="overview-numeric-health"
      actions={health.whole_recording && <span class="muted small">whole recording</span>}
    >
      <p>{health.headline}</p>
      <Facts
        rows={[
          [<Term of="skippedSteps">Skipped steps</Term>, <Count value={health.skipped_steps} />],
          ...(iterations ? [["Skipped in iterations", iterations] as const] : []),
          [<Term of="checkedSteps">Checked steps</Term>, <Count value={health.checked_steps} />],
          [<Term of="lossScale">Loss scale at the end</Term>, <Count value={health.loss_scale} />],
          [<Term of="stepsSinceChange">Steps since it changed</Term>, <Count value={health.steps_since_change} />],
        ]}
      />
      {health.loss_scales.length > 1 && <Series points={health.loss_scales} />}
    </Card>
  );
}

const COLUMNS: Column<LossScalePoint>[] = [
  number("Cycle", "count", (point) => point.cycle),
  number("Step", "count", (point) => point.step),
  number("Loss scale", "count", (point) => point.scale, DEFINITIONS.lossScale),
];

function Series({ points: inOrder }: { points: LossScalePoint[] }) {
  const points = [...inOrder].reverse();
  // Scales double and halve: equal steps of the bars are factors of two, and the lowest still has a bar.
  const bits = points.map((point) => Math.log2(point.scale));
  const least = Math.min(...bits) - 1;
  const range = Math.max(...bits) - least;
  return (
    <Drawing name="Loss scale by cycle" columns={COLUMNS} rows={inOrder}>
      <div class="table-box loss-scales" tabIndex={0} role="region" aria-label="Loss scale by cycle, the last first">
        <table>
          <thead>
            <tr>
              <th scope="col">Cycle</th>
              <th scope="col">Step</th>
              <th scope="col">Loss scale</th>
              <th scope="col" aria-hidden="true" />
            </tr>
          </thead>
          <tbody>
            {points.map((point, index) => (
              <tr key={point.cycle}>
                <td>{point.cycle}</td>
                <td>
                  <Count value={point.step} />
                </td>
                <td>
                  <Count value={point.scale} />
                </td>
                <td aria-hidden="true">
                  <span class="loss-scale-bar" style={{ width: `${((bits[index]! - least) / range) * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Drawing>
  );
}

function Count({ value }: { value: number | null }) {
  return <span class={value === null ? "missing" : "num"}>{formatCount(value)}</span>;
}
