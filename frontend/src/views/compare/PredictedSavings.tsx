/** What was predicted from the base alone and what was measured: the forecast, and the savings that the advice stated. */
import { useState } from "preact/hooks";
import * as columns from "../../api/columns";
import type { ComparePage, ForecastCheckPanel, ForecastCheckOp, RealisedSavingRow } from "../../api/types";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { RangeBar } from "../../components/RangeBar";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { colourOf } from "../../format/colours";
import { DEFINITIONS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { exactUnit } from "../../format/unit";
import { formatInterval, threeDigits } from "../../format/number";
import { keyOfModule } from "./drill";
import { drill } from "./drillInto";
import { pairModuleParam, pairParam } from "./params";

const ns = (ms: number): number => Math.round(ms * 1e6);

export function PredictedSavings({ data }: { data: ComparePage }) {
  const promises = data.promises;
  if (promises === null) return null;
  return (
    <Card title={<Term of="promises">Predicted and measured savings</Term>} testId="compare-promises">
      {promises.refusal && (
        <p class="muted" data-testid="promise-refusal">
          No forecast to compare with the candidate: {promises.refusal}
        </p>
      )}
      {promises.forecast && <Forecast panel={promises.forecast} data={data} />}
      {promises.savings.length > 0 && (
        <Drawing name="Savings predicted and measured" columns={SAVINGS} rows={promises.savings}>
          <ul class="promised" data-testid="promised-savings">
            {promises.savings.map((saving) => (
              <Saving key={saving.rule} saving={saving} />
            ))}
          </ul>
        </Drawing>
      )}
    </Card>
  );
}

const SAVINGS: Column<RealisedSavingRow>[] = [
  text("Rule", (saving) => saving.rule),
  text("Change", (saving) => saving.change),
  number("Predicted", "ns", (saving) => saving.expected_ns, DEFINITIONS.saving),
  number("Predicted, from", "ns", (saving) => saving.low_ns, "", "stated_low_ns"),
  number("Predicted, to", "ns", (saving) => saving.high_ns, "", "stated_high_ns"),
  number("Measured", "ns", (saving) => saving.realised_ns),
  number("Measured, from", "ns", (saving) => saving.realised_low_ns, "", "realised_low_ns"),
  number("Measured, to", "ns", (saving) => saving.realised_high_ns, "", "realised_high_ns"),
  text("Outcome", (saving) => OUTCOMES[saving.outcome]),
];

interface Part {
  label: string;
  predicted_ms: number;
  measured_ms: number;
  error_percent: number | null;
}

const PARTS: Column<Part>[] = [
  text("Per step", (part) => part.label),
  number("Forecast", "ns", (part) => ns(part.predicted_ms), DEFINITIONS.forecast),
  number("Measured", "ns", (part) => ns(part.measured_ms)),
  number("Error", "percent", (part) => part.error_percent, DEFINITIONS.promiseError),
];

/** Signed percent of an error: above 0 the forecast was too long. */
function ErrorPercent({ value }: { value: number | null }) {
  if (value === null) return <span class="missing">–</span>;
  return (
    <span
      class="num"
      title={exactUnit(value, "percent")}
    >{`${value > 0 ? "+" : value < 0 ? "−" : ""}${threeDigits(Math.abs(value))} %`}</span>
  );
}

function Forecast({ panel, data }: { panel: ForecastCheckPanel; data: ComparePage }) {
  const colour = colourOf(panel.precision, 0, "ran_in");
  const max = 1.05 * Math.max(panel.high_ms, panel.step_high_ms, panel.base_ms);
  const measured = { low: panel.step_low_ms, value: panel.step_ms, high: panel.step_high_ms };
  const parts: Part[] = [
    {
      label: "Step without the profiler",
      predicted_ms: panel.predicted_ms,
      measured_ms: panel.step_ms,
      error_percent: panel.error_percent,
    },
    ...panel.parts,
  ];
  return (
    <div data-testid="promised-forecast">
      <Drawing name="Forecast and measured" columns={PARTS} rows={parts}>
        <p data-testid="promised-headline">{panel.headline}</p>
        <div class="promise-line">
          <span
            class={`promise-outcome outcome-${panel.outcome === "within" ? "kept" : panel.outcome === "shorter" ? "more" : "less"}`}
            data-testid="promised-outcome"
          >
            {panel.outcome_text}
          </span>
          <RangeBar
            max={max}
            low={panel.low_ms}
            value={panel.predicted_ms}
            high={panel.high_ms}
            colour={colour}
            reference={panel.base_ms}
            measured={measured}
          />
        </div>
        <p class="muted small promise-key">
          <span class="swatch" style={{ background: colour }} /> forecast with its interval ·{" "}
          <span class="promise-diamond" /> measured{panel.estimated && ", an estimate without the profiler"} · thin
          line: the base, {formatNs(ns(panel.base_ms))}
        </p>
        {panel.note && (
          <p class="promise-note" data-testid="promised-note">
            {panel.note}
          </p>
        )}
        <table class="readings promise-parts">
          <thead>
            <tr>
              <th scope="col">Per step</th>
              <th scope="col" class="right">
                Forecast
              </th>
              <th scope="col" class="right">
                Measured
              </th>
              <th scope="col" class="right">
                <Term of="promiseError">Error</Term>
              </th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <td>Step without the profiler</td>
              <td class="right">
                <Value value={ns(panel.predicted_ms)} unit="ns" />
              </td>
              <td class="right">
                {panel.estimated && <span title="estimated">~</span>}
                <Value value={ns(panel.step_ms)} unit="ns" />
              </td>
              <td class="right">
                <ErrorPercent value={panel.error_percent} />
              </td>
            </tr>
            {panel.parts.map((part) => (
              <tr key={part.key} data-testid={`promised-${part.key}`}>
                <td>{part.label}</td>
                <td class="right">
                  <Value value={ns(part.predicted_ms)} unit="ns" />
                </td>
                <td class="right">
                  <Value value={ns(part.measured_ms)} unit="ns" />
                </td>
                <td class="right">
                  <ErrorPercent value={part.error_percent} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Drawing>
      <Ops panel={panel} data={data} />
    </div>
  );
}

const COLUMNS = tableColumns(columns.ForecastCheckOp, {
  error_percent: { cell: (op) => <ErrorPercent value={op.error_percent} /> },
  precision: { value: (op) => op.precision.toUpperCase() || null },
});

function Ops({ panel, data }: { panel: ForecastCheckPanel; data: ComparePage }) {
  const [shown, setShown] = useState(false);
  const open = (row: ForecastCheckOp): void => {
    const pair = data.ops.find((op) => op.a_id === row.id);
    drill(data, pairModuleParam.to(keyOfModule(row.module)), pairParam.to(pair?.id ?? null));
    document.querySelector('[data-testid="compare-drill"]')?.scrollIntoView?.({ block: "start" });
  };
  return (
    <details class="promise-ops" onToggle={(event) => setShown((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Each op: forecast and measured, what was missed by most first</summary>
      {/* Hundreds of rows, which most readers of the page leave closed. */}
      {shown && (
        <DataTable
          name={`predicted ops ${panel.precision}`}
          testId="promised-ops"
          columns={COLUMNS}
          rows={panel.ops}
          rowId={(op) => op.id}
          totalRows={panel.total_rows}
          onSelect={open}
        />
      )}
    </details>
  );
}

const OUTCOMES: Record<RealisedSavingRow["outcome"], string> = {
  kept: "as predicted",
  more: "more than predicted",
  less: "less than predicted",
  broken: "nothing saved",
  shared: "several changes at once",
};

function Saving({ saving }: { saving: RealisedSavingRow }) {
  const low = saving.realised_low_ns ?? saving.realised_ns;
  const high = saving.realised_high_ns ?? saving.realised_ns;
  const max = 1.05 * Math.max(saving.high_ns, high, 1);
  const measured = { low: Math.max(0, low), value: saving.realised_ns, high: Math.max(0, high) };
  return (
    <li data-testid={`promised-${saving.rule}`}>
      <p>
        <span class="muted">Advised:</span> {saving.title}. <span class="muted">Changed:</span> {saving.change}.
      </p>
      <div class="promise-line">
        <span class={`promise-outcome outcome-${saving.outcome}`}>{OUTCOMES[saving.outcome]}</span>
        <RangeBar
          max={max}
          low={Math.max(0, saving.low_ns)}
          value={saving.expected_ns}
          high={saving.high_ns}
          colour="var(--c-saving)"
          measured={measured}
        />
      </div>
      <p>
        Predicted: {formatNs(saving.expected_ns)} a step, {formatInterval(saving.low_ns, saving.high_ns, formatNs)}.{" "}
        {saving.text}
      </p>
    </li>
  );
}
