/** The columns of the table of runs. */
import type { RunRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { Value } from "../../components/Value";
import { DEFINITIONS } from "../../format/definitions";
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

/** A step without the profiler; ~ marks one that is estimated. */
export function StepTime({ of }: { of: Pick<RunRow, "step_ns" | "step_source" | "step_words"> }) {
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

export const COLUMNS: Column<RunRow>[] = [
  { id: "run", header: "Run", definition: DEFINITIONS.runName, value: (row) => row.ref.run, width: "230px" },
  {
    id: "model",
    header: "Model",
    definition: DEFINITIONS.runModel,
    value: (row) => row.model || null,
    filter: "choice",
    width: "170px",
  },
  {
    id: "precision",
    header: "Precision",
    definition: DEFINITIONS.runPrecision,
    value: (row) => row.precision || null,
    filter: "choice",
    width: "120px",
  },
  {
    id: "batch",
    header: "Batch",
    definition: "Samples in a batch.",
    value: (row) => row.batch_size,
    unit: "count",
    width: "80px",
  },
  {
    id: "step",
    header: "Step time",
    definition: DEFINITIONS.runStep,
    value: (row) => row.step_ns,
    unit: "ns",
    cell: (row) => <StepTime of={row} />,
    width: "110px",
  },
  {
    id: "speedup",
    header: "Speedup",
    definition: DEFINITIONS.runSpeedup,
    value: (row) => row.speedup,
    unit: "ratio",
    cell: (row) => <Speedup row={row} bySamples={row.by_samples} />,
    width: "90px",
  },
  {
    id: "noise",
    header: "95 %",
    definition: DEFINITIONS.runNoise,
    value: (row) => (row.speedup === null ? null : row.change),
    filter: "choice",
    missing: "–",
    cell: (row) => <Noise row={row} />,
    width: "180px",
  },
  {
    id: "base",
    header: "Base",
    definition: DEFINITIONS.runBase,
    value: (row) => row.base || null,
    missing: "none",
    cell: (row) => <Base row={row} />,
    width: "190px",
  },
  {
    id: "changes",
    header: "Differs in",
    definition: DEFINITIONS.runChanges,
    value: (row) => row.changes.join("; ") || null,
    missing: "–",
    width: "200px",
  },
  {
    id: "samples",
    header: "Samples/s",
    definition: DEFINITIONS.samples,
    value: (row) => row.samples_per_second,
    unit: "per_second",
    width: "104px",
  },
  {
    id: "recorded",
    header: "Recorded step",
    definition: DEFINITIONS.runRecorded,
    value: (row) => row.recorded_ns,
    unit: "ns",
    cell: (row) => <Recorded row={row} />,
    width: "150px",
  },
  {
    id: "source",
    header: "Step is",
    definition: DEFINITIONS.runSource,
    value: (row) => row.step_words,
    filter: "choice",
    width: "170px",
  },
  {
    id: "utilization",
    header: "GPU util.",
    definition: DEFINITIONS.gpuUtilization,
    value: (row) => row.gpu_utilization,
    unit: "percent",
    width: "96px",
  },
  {
    id: "tc",
    header: "TC util.",
    definition: DEFINITIONS.tcUtilization,
    value: (row) => row.tensor_core_utilization,
    unit: "percent",
    width: "92px",
  },
  {
    id: "tcshare",
    header: "Kernels on TC",
    definition: DEFINITIONS.runTcShare,
    value: (row) => row.tensor_core_share,
    unit: "percent",
    width: "116px",
  },
  {
    id: "memory",
    header: "Peak memory",
    definition: DEFINITIONS.runMemory,
    value: (row) => row.peak_memory_bytes,
    unit: "bytes",
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
    width: "112px",
  },
  {
    id: "energy",
    header: "Energy",
    definition: DEFINITIONS.runJoules,
    value: (row) => row.joules_per_step,
    unit: "joules",
    width: "92px",
  },
  {
    id: "sampleenergy",
    header: "Energy/sample",
    definition: DEFINITIONS.runJoulesPerSample,
    value: (row) => row.joules_per_sample,
    unit: "joules",
    width: "116px",
  },
  {
    id: "flops",
    header: "FLOPs/step",
    definition: DEFINITIONS.runFlops,
    value: (row) => row.flops,
    unit: "flops",
    width: "112px",
  },
  {
    id: "launches",
    header: "Launches",
    definition: "Kernels, copies and sets launched per step.",
    value: (row) => row.launches,
    unit: "count",
    width: "94px",
  },
  {
    id: "advice",
    header: "First advice",
    definition: DEFINITIONS.runAdvice,
    value: (row) => row.advice?.problem ?? null,
    missing: "–",
    filter: "choice",
    width: "230px",
  },
  {
    id: "workers",
    header: "Workers",
    definition: "Worker processes of the DataLoader.",
    value: (row) => row.workers,
    unit: "count",
    width: "90px",
  },
  {
    id: "gpu",
    header: "GPU",
    definition: "The GPU, or the CPU where none was used.",
    value: (row) => row.gpu || null,
    filter: "choice",
    width: "150px",
  },
];
