/** Which forecast is shown at first, and the columns of its ops. */
import * as columns from "../../api/columns";
import type { ForecastOp, MixedPrecisionChoice } from "../../api/types";
import { number, text } from "../../components/export/columns";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { DEFINITIONS } from "../../format/definitions";
import { exactNs, formatNsDifference } from "../../format/duration";

/** The one reason why there is no forecast at all; null where there is one, or where the reasons differ. */
export function sharedRefusal(choices: MixedPrecisionChoice[]): string | null {
  const reasons = new Set(choices.map((choice) => choice.refusal));
  const [reason] = reasons;
  return reasons.size === 1 && reason ? reason : null;
}

/** The precision of the address, else the one that gains most. */
export function chosenPrecision(
  choices: MixedPrecisionChoice[],
  precision: string | null,
): MixedPrecisionChoice | null {
  const named = choices.find((choice) => choice.precision === precision);
  if (named) return named;
  const known = choices.filter((choice) => choice.forecast !== null);
  return known.reduce<MixedPrecisionChoice | null>(
    (best, choice) => (best === null || choice.forecast!.speedup > best.forecast!.speedup ? choice : best),
    null,
  );
}

const ns = (ms: number): number => Math.round(ms * 1e6);

/** What the op's kernels and its casts take then, less what its kernels take now. */
const change = (op: ForecastOp): number => ns(op.predicted_ms + op.casts_ms - op.measured_ms);

export const rowId = (op: ForecastOp): string => op.id;

/** What the side by side of the precisions is drawn from. */
export const CHOICES: Column<MixedPrecisionChoice>[] = [
  text("Precision", ({ label }) => label),
  number("Speedup", "ratio", ({ forecast }) => forecast?.speedup ?? null, DEFINITIONS.forecast),
  number("Speedup, from", "ratio", ({ forecast }) => forecast?.speedup_low ?? null, "", "speedup_low"),
  number("Speedup, to", "ratio", ({ forecast }) => forecast?.speedup_high ?? null, "", "speedup_high"),
  number(
    "Step, forecast",
    "ns",
    ({ forecast }) => (forecast ? ns(forecast.predicted_step_ms) : null),
    "",
    "predicted_step_ns",
  ),
  number(
    "Step now",
    "ns",
    ({ forecast }) => (forecast ? ns(forecast.unprofiled_step_ms) : null),
    DEFINITIONS.forecastNow,
    "unprofiled_step_ns",
  ),
  text("Why none", ({ refusal }) => refusal),
];

const CHANGE: Column<ForecastOp> = {
  id: "change",
  header: "Change",
  definition: "Forecast and casts less now, per iteration: negative is faster.",
  value: change,
  unit: "ns",
  cell: (op) => (
    <span
      class={`num ${Math.abs(change(op)) <= 0.01 * ns(op.measured_ms) ? "" : change(op) > 0 ? "change-worse" : "change-better"}`}
      title={exactNs(change(op))}
    >
      {formatNsDifference(change(op))}
    </span>
  ),
  width: "100px",
};

/** With what changes, after the casts. */
export const FORECAST_COLUMNS: Column<ForecastOp>[] = tableColumns(columns.ForecastOp, {
  precision: { value: (op) => op.precision.toUpperCase() || null },
}).flatMap((column) => (column.id === "casts_ms" ? [column, CHANGE] : [column]));
