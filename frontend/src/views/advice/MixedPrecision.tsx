/** What TF32, FP16 and BF16 would gain, side by side, by the forecast from this run; the chosen one in detail. */
import { profileQuery } from "../../api/queries";
import type { ForecastPage, MixedPrecision as MixedPrecisionData, MixedPrecisionChoice } from "../../api/types";
import { useResource } from "../../api/useResource";
import { Card } from "../../components/Card";
import { CodeBlock } from "../../components/CodeBlock";
import { Drawing } from "../../components/export/Drawing";
import { Facts } from "../../components/Facts";
import { RangeBar } from "../../components/RangeBar";
import { ResourceView } from "../../features/ResourceView";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { colourOf } from "../../format/colours";
import { exactNs, formatNs } from "../../format/duration";
import { exactUnit } from "../../format/unit";
import { formatInterval, formatRatio } from "../../format/number";
import { CHOICES, chosenPrecision, FORECAST_COLUMNS, rowId, sharedRefusal } from "./forecast";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { opParam, profileParam } from "../../state/sharedParams";
import { precisionParam } from "./params";

export function MixedPrecision({ data }: { data: MixedPrecisionData }) {
  const refusal = sharedRefusal(data.choices);
  const chosen = chosenPrecision(data.choices, precisionParam.value);
  const most = Math.max(1, ...data.choices.map((choice) => choice.forecast?.speedup_high ?? 0)) * 1.02;
  return (
    <Card
      title={<Term of="forecast">What mixed precision would gain</Term>}
      class="mixed-precision"
      testId="mixed-precision"
    >
      {refusal !== null ? (
        <p class="muted" data-testid="forecast-refusal">
          No forecast: {refusal}
        </p>
      ) : (
        <>
          <Drawing name="What mixed precision would gain" columns={CHOICES} rows={data.choices}>
            <ul class="forecast-choices">
              {data.choices.map((choice) => (
                <Choice
                  key={choice.precision}
                  choice={choice}
                  most={most}
                  chosen={choice === chosen}
                  onChoose={() => assign(precisionParam.to(choice.precision))}
                />
              ))}
            </ul>
          </Drawing>
          {chosen && (
            <details class="forecast-detail" open={precisionParam.value !== null}>
              <summary>{chosen.label} in detail</summary>
              <Chosen choice={chosen} />
            </details>
          )}
        </>
      )}
    </Card>
  );
}

interface ChoiceProps {
  choice: MixedPrecisionChoice;
  most: number;
  chosen: boolean;
  onChoose: () => void;
}

function Choice({ choice, most, chosen, onChoose }: ChoiceProps) {
  const { forecast } = choice;
  const colour = colourOf(choice.precision, 0, "ran_in");
  return (
    <li>
      <button
        type="button"
        class={`forecast-choice ${chosen ? "selected" : ""}`}
        aria-pressed={chosen}
        data-testid={`forecast-${choice.precision}`}
        data-value={forecast === null ? "unknown" : String(forecast.speedup)}
        onClick={onChoose}
      >
        <span class="forecast-label">
          <span class="swatch" style={{ background: colour }} /> {choice.label}
        </span>
        {forecast === null ? (
          <span class="muted forecast-none">{choice.refusal}</span>
        ) : (
          <>
            <RangeBar
              max={most}
              low={forecast.speedup_low}
              value={forecast.speedup}
              high={forecast.speedup_high}
              colour={colour}
              reference={1}
            />
            <span
              class="num forecast-speedup"
              title={`${exactUnit(forecast.speedup, "ratio")}, ${exactUnit(forecast.speedup_low, "ratio")} to ${exactUnit(forecast.speedup_high, "ratio")}`}
            >
              <strong class={forecast.speedup_high < 1 ? "change-worse" : ""}>{formatRatio(forecast.speedup)}</strong>{" "}
              <span class="muted">{formatInterval(forecast.speedup_low, forecast.speedup_high, formatRatio)}</span>
            </span>
            <span class="muted forecast-step" title={exactNs(forecast.predicted_step_ms * 1e6)}>
              {formatNs(forecast.predicted_step_ms * 1e6)} a step, {PACE[forecast.limited_by] ?? forecast.limit_text}
            </span>
          </>
        )}
      </button>
    </li>
  );
}

/** Short for the line; the detail has the sentence. */
const PACE: Record<string, string> = {
  gpu: "GPU-paced",
  cpu: "CPU-paced",
  dataloader: "paced by data loading",
  both: "CPU and GPU in turns",
};

function Chosen({ choice }: { choice: MixedPrecisionChoice }) {
  const { forecast } = choice;
  return (
    <div class="forecast-chosen" data-testid="forecast-chosen">
      <p data-testid="forecast-headline">{forecast?.headline ?? choice.refusal}</p>
      <div class="finding-body">
        {forecast && <Consists forecast={forecast} />}
        <div>
          <h3>What to change</h3>
          <p>{choice.change}</p>
          <CodeBlock code={choice.code} label={`Code for ${choice.label}`} />
        </div>
      </div>
      {forecast && <Ops precision={choice.precision} />}
    </div>
  );
}

function Consists({ forecast }: { forecast: ForecastPage }) {
  const ns = (ms: number) => <Value value={Math.round(ms * 1e6)} unit="ns" />;
  return (
    <div>
      <h3>A step, per iteration</h3>
      <Facts
        rows={[
          [<Term of="forecastNow">Step now, without the profiler</Term>, ns(forecast.unprofiled_step_ms)],
          [<Term of="recordedStep" />, ns(forecast.measured_step_ms)],
          [
            <Term of="forecast">Step, forecast</Term>,
            <>
              {ns(forecast.predicted_step_ms)}{" "}
              <span class="muted">({formatInterval(forecast.low_ms * 1e6, forecast.high_ms * 1e6, formatNs)})</span>
            </>,
          ],
          [<Term of="forecastPace">What sets the pace</Term>, forecast.limit_text],
          [<Term of="forecastGpuNow">GPU work now</Term>, ns(forecast.gpu_before_ms)],
          [<Term of="forecastGpu">GPU work, forecast</Term>, ns(forecast.gpu_ms)],
          ...(forecast.casts
            ? ([[<Term of="forecastCasts">of it {forecast.casts} casts</Term>, ns(forecast.casts_ms)]] as const)
            : []),
          ...(forecast.scaler_ms
            ? ([[<Term of="forecastScaler">of it GradScaler</Term>, ns(forecast.scaler_ms)]] as const)
            : []),
          [<Term of="forecastCpu">CPU's own work, forecast</Term>, ns(forecast.cpu_ms)],
        ]}
      />
    </div>
  );
}

function Ops({ precision }: { precision: string }) {
  const resource = useResource("forecast", { ...profileQuery(profileParam.value, null), precision }, "forecast");
  return (
    <ResourceView resource={resource}>
      {(page) => (
        <DataTable
          name={`forecast ${page.precision}`}
          testId="forecast-ops"
          columns={FORECAST_COLUMNS}
          rows={page.ops}
          rowId={rowId}
          sort={{ id: "change", desc: false }}
          onSelect={(row) => goTo("ops", opParam.to(row.id))}
        />
      )}
    </ResourceView>
  );
}
