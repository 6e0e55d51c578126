/**
 * A bar for each run, by model: its step time on a scale of its model's own, or that over its base's, on one scale. Plain boxes, so
 * that hundreds of them scroll and can be tabbed.
 */
import type { RunRow } from "../../api/types";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { colourOf } from "../../format/colours";
import { DEFINITIONS, LABELS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { formatRatio } from "../../format/number";
import { StepTime } from "./columns";
import { groupRuns } from "./runGroups";

export type BarScale = "time" | "ratio";

interface RunBarsProps {
  rows: RunRow[];
  scale: BarScale;
  onOpen: (row: RunRow) => void;
}

/** The step time against the base's: 1 for a base, null where there is none. */
export function relativeTime(row: RunRow): number | null {
  if (row.base === row.ref.run) return 1;
  return row.speedup === null ? null : 1 / row.speedup;
}

const COLUMNS: Column<RunRow>[] = [
  text("Run", (row) => row.ref.run),
  text("Model", (row) => row.model, DEFINITIONS.runModel),
  text("Precision", (row) => row.precision_key),
  number(LABELS.stepTime, "ns", (row) => row.step_ns, DEFINITIONS.stepTime),
  number("Step time, 95 % from", "ns", (row) => row.step_low_ns, DEFINITIONS.stepInterval, "step_low_ns"),
  number("Step time, 95 % to", "ns", (row) => row.step_high_ns, DEFINITIONS.stepInterval, "step_high_ns"),
  text("Step is", (row) => row.step_words, DEFINITIONS.runSource),
  number(LABELS.recordedStep, "ns", (row) => row.recorded_ns, DEFINITIONS.recordedStep),
  number(LABELS.stepDeviation, "ns", (row) => row.deviation_ns, DEFINITIONS.stepDeviation),
  text("Base", (row) => row.base, DEFINITIONS.runBase),
  number("Step time over the base's", "ratio", relativeTime),
];

export function RunBars(props: RunBarsProps) {
  return (
    <Drawing
      name={props.scale === "time" ? "Step time by run" : "Step time over that of the base"}
      columns={COLUMNS}
      rows={props.rows}
    >
      <Bars {...props} />
    </Drawing>
  );
}

function Bars({ rows, scale, onOpen }: RunBarsProps) {
  const length = (row: RunRow): number | null => (scale === "time" ? row.step_ns : relativeTime(row));
  const groups = groupRuns(rows, length);
  // Ratios compare models; times do not: a step of one model next to that of another would be all that is seen.
  const longest = Math.max(0, ...groups.map(({ full }) => full));
  const keys = [...new Set(rows.map((row) => row.precision_key))].sort();
  return (
    <>
      <section class="run-bars" tabIndex={0} aria-label="Bars of the runs, scrollable">
        {groups.map(({ title, rows: members, full }) => (
          <section key={title} class="model-bars" data-testid="model-bars">
            <h3>
              {title}
              {scale === "time" && <span class="muted small"> full width: {formatNs(full)}</span>}
            </h3>
            <ul>
              {members.map((row) => (
                <Bar
                  key={row.ref.run}
                  row={row}
                  scale={scale}
                  length={length(row)}
                  full={(scale === "time" ? full : longest) || 1}
                  onOpen={onOpen}
                />
              ))}
            </ul>
          </section>
        ))}
      </section>
      <p class="muted small run-bars-scale">
        {scale === "time"
          ? "Bars are relative to the slowest run of the model."
          : `All bars have one scale: full width is ${formatRatio(longest)} the step of the base.`}
      </p>
      <p class="muted small run-bars-key">
        {keys.map((key) => (
          <span key={key}>
            <span class="swatch" style={{ background: colourOf(key || "unknown", 0, "ran_in") }} />{" "}
            {key ? key.toUpperCase() : "unknown precision"}{" "}
          </span>
        ))}
      </p>
    </>
  );
}

interface BarProps {
  row: RunRow;
  scale: BarScale;
  length: number | null;
  full: number;
  onOpen: (row: RunRow) => void;
}

function Bar({ row, scale, length, full, onOpen }: BarProps) {
  return (
    <li class={row.base === row.ref.run ? "run-base" : ""}>
      <button type="button" class="link run-bar-name" title={row.ref.run} onClick={() => onOpen(row)}>
        {row.ref.run}
      </button>
      <span class="run-bar-track" aria-hidden="true">
        {length !== null && (
          <span
            class="run-bar"
            style={{
              width: `${(length / full) * 100}%`,
              background: colourOf(row.precision_key || "unknown", 0, "ran_in"),
            }}
          />
        )}
      </span>
      <span class="num run-bar-value">
        {scale === "time" ? (
          <StepTime of={row} />
        ) : length === null ? (
          <span class="missing">no base</span>
        ) : (
          formatRatio(length)
        )}
      </span>
    </li>
  );
}
