/** The columns of the table of runs. */
import * as columns from "../../api/columns";
import type { RunRow } from "../../api/types";
import { tableColumns } from "../../components/table/declared";
import { Value } from "../../components/Value";
import { exactNs, formatNs } from "../../format/duration";
import { formatInterval, formatRatio } from "../../format/number";

/** How much is certain about a ratio, in words. */
export function noiseText(low: number | null, high: number | null): string {
  return low === null || high === null
    ? "unknown: a step is that of a single iteration"
    : formatInterval(low, high, formatRatio);
}

interface Gained {
  speedup: number | null;
  low: number | null;
  high: number | null;
  change: RunRow["change"];
}

/** A speedup in the colour of what is certain about it. */
export function Speedup({ row, bySamples = false }: { row: Gained; bySamples?: boolean }) {
  if (row.speedup === null) return <span class="missing">–</span>;
  const colour = row.change === "faster" ? "change-better" : row.change === "slower" ? "change-worse" : "muted";
  const what = bySamples
    ? "Samples per second against the base's"
    : "Step of the base over that of the run, without the profiler";
  return (
    <span class={`num ${colour}`} title={`${what}: ${row.speedup}; 95 %: ${noiseText(row.low, row.high)}`}>
      {formatRatio(row.speedup)}
    </span>
  );
}

function Noise({ row }: { row: RunRow }) {
  if (row.speedup === null) return <span class="missing">–</span>;
  return (
    <span class="num">
      {noiseText(row.low, row.high)}
      {row.change === "within noise" && <span class="muted">, noise</span>}
    </span>
  );
}

/** A step without the profiler; ~ marks one that is estimated. Of a recording without marked steps none is known. */
export function StepTime({ of }: { of: Pick<RunRow, "step_ns" | "step_source" | "step_words"> }) {
  if (of.step_source === "whole")
    return (
      <span class="muted" title={`${exactNs(of.step_ns)}, ${of.step_words}`}>
        no steps
      </span>
    );
  return (
    <span class="num" title={`${exactNs(of.step_ns)}, ${of.step_words}`}>
      {of.step_source === "simulated" && "~"}
      {formatNs(of.step_ns)}
    </span>
  );
}

function Recorded({ row }: { row: RunRow }) {
  return (
    <span class="num" title={`${exactNs(row.recorded_ns)} over ${row.iterations} iterations`}>
      {formatNs(row.recorded_ns)}
      {row.deviation_ns !== null && <span class="muted"> ± {formatNs(row.deviation_ns)}</span>}
    </span>
  );
}

function Base({ row }: { row: RunRow }) {
  if (!row.base) {
    return (
      <span class="missing" title={row.no_base}>
        none
      </span>
    );
  }
  return row.base === row.ref.run ? <em>is the base</em> : row.base;
}

export const COLUMNS = tableColumns(columns.RunRow, {
  ref: { value: (row) => row.ref.run },
  step_ns: { cell: (row) => <StepTime of={row} /> },
  speedup: { cell: (row) => <Speedup row={row} bySamples={row.by_samples} /> },
  change: { value: (row) => (row.speedup === null ? null : row.change), cell: (row) => <Noise row={row} /> },
  base: { cell: (row) => <Base row={row} /> },
  changes: { value: (row) => row.changes.join("; ") || null },
  recorded_ns: { cell: (row) => <Recorded row={row} /> },
  peak_memory_bytes: {
    cell: (row) => (
      <span
        title={
          row.peak_memory_of === "process"
            ? "Peak of the whole process"
            : row.peak_memory_of
              ? "Peak of the recorded iterations"
              : undefined
        }
      >
        <Value value={row.peak_memory_bytes} unit="bytes" />
        {row.peak_memory_of === "process" && <span class="muted"> *</span>}
      </span>
    ),
  },
  advice: { value: (row) => row.advice?.problem ?? null },
});
