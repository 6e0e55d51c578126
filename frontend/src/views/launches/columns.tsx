/** The columns of the Launches page's tables. */
import type { Category, GapRow, LaunchedKernel, PaceRow, Slice, SyncRow } from "../../api/types";
import { CutName } from "../../components/CutName";
import { StackedBar } from "../../components/StackedBar";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { passColumn } from "../passColumn";

/** The page's causes with the time that one row has of each. */
function slicesOf(causes: Slice[], times: number[]): Slice[] {
  return causes.map(({ key, label }, index) => ({ key, label, value_ns: times[index] ?? 0, percent: null }));
}

function largest(causes: Slice[], times: number[]): string {
  const most = Math.max(...times);
  return most > 0 ? (causes[times.indexOf(most)]?.label ?? "") : "–";
}

function Causes({ causes, times, total }: { causes: Slice[]; times: number[]; total: number }) {
  return (
    <span class="gap-bar">
      <span>{largest(causes, times)}</span>
      {total > 0 && <StackedBar slices={slicesOf(causes, times)} scaleNs={total} context="account" />}
    </span>
  );
}

/** `causes` in the order of the rows' times. */
export function paceColumns(causes: Slice[], severalGpus: boolean): Column<PaceRow>[] {
  const gpu: Column<PaceRow> = {
    id: "gpu",
    header: "GPU",
    definition: "Index of the GPU.",
    value: (row) => String(row.gpu),
    filter: "choice",
    width: "70px",
  };
  return [
    {
      id: "iteration",
      header: "Iteration",
      definition: "Number of the iteration, as the training counts them.",
      value: (row) => row.number,
      unit: "count",
      width: "96px",
    },
    ...(severalGpus ? [gpu] : []),
    {
      id: "pace",
      header: "Pace",
      definition: DEFINITIONS.pace,
      value: (row) => row.pace,
      filter: "choice",
      width: "90px",
    },
    {
      id: "duration",
      header: "Duration",
      definition: DEFINITIONS.iterations,
      value: (row) => row.duration_ns,
      unit: "ns",
      width: "92px",
    },
    {
      id: "idle",
      header: "GPU idle",
      definition: DEFINITIONS.recordedIdle,
      value: (row) => row.idle_percent,
      unit: "percent",
      width: "92px",
    },
    {
      id: "late",
      header: "Launched late",
      definition: DEFINITIONS.launchedLate,
      value: (row) => row.late_percent,
      unit: "percent",
      width: "118px",
    },
    {
      id: "slack",
      header: "CPU not needed",
      definition: DEFINITIONS.cpuSlack,
      value: (row) => row.slack_percent,
      unit: "percent",
      width: "146px",
    },
    {
      id: "gaps",
      header: "Gaps",
      definition: DEFINITIONS.gapNumber,
      value: (row) => row.gaps,
      unit: "count",
      width: "76px",
    },
    {
      id: "longest",
      header: "Longest gap",
      definition: DEFINITIONS.gapLongest,
      value: (row) => row.longest_gap_ns,
      unit: "ns",
      width: "108px",
    },
    {
      id: "cause",
      header: "Cause",
      definition: "The bucket of the account of a step that holds most of the idle time; the bar shows all.",
      value: (row) => largest(causes, row.idle_by_cause_ns),
      filter: "choice",
      cell: (row) => <Causes causes={causes} times={row.idle_by_cause_ns} total={row.idle_ns} />,
      width: "360px",
    },
  ];
}

export function gapColumns(causes: Slice[], kinds: Category[], severalGpus: boolean): Column<GapRow>[] {
  const labels = new Map(kinds.map(({ key, label }) => [key, label]));
  const gpu: Column<GapRow> = {
    id: "gpu",
    header: "GPU",
    definition: "Index of the GPU.",
    value: (row) => String(row.gpu),
    filter: "choice",
    width: "70px",
  };
  return [
    {
      id: "kernel",
      header: "Ended by",
      definition: DEFINITIONS.gapEnded,
      value: (row) => row.kernel,
      cell: (row) => row.kernel || <span class="missing">end of the iteration</span>,
      width: "260px",
    },
    {
      id: "duration",
      header: "Gap",
      definition: DEFINITIONS.gapDuration,
      value: (row) => row.duration_ns,
      unit: "ns",
      width: "88px",
    },
    {
      id: "share",
      bar: true,
      header: "%",
      definition: "Share of the recorded iteration.",
      value: (row) => row.percent,
      unit: "percent",
      width: "76px",
    },
    {
      id: "iteration",
      header: "Iteration",
      definition: "Number of the iteration, as the training counts them.",
      value: (row) => row.number,
      unit: "count",
      width: "88px",
    },
    ...(severalGpus ? [gpu] : []),
    {
      id: "start",
      header: "At",
      definition: DEFINITIONS.gapStart,
      value: (row) => row.start_ns,
      unit: "ns",
      width: "84px",
    },
    {
      id: "cause",
      header: "Cause",
      definition: DEFINITIONS.gapCause,
      value: (row) => largest(causes, row.cause_ns),
      filter: "choice",
      cell: (row) => <Causes causes={causes} times={row.cause_ns} total={row.duration_ns} />,
      width: "240px",
    },
    {
      id: "kind",
      header: "Next work",
      definition: DEFINITIONS.idleKind,
      value: (row) => labels.get(row.kind) ?? null,
      filter: "choice",
      width: "178px",
    },
    {
      id: "op",
      header: "Op",
      definition: DEFINITIONS.gapOp,
      value: (row) => row.op || null,
      cell: (row) => (row.op ? <CutName name={row.op} /> : undefined),
      missing: "–",
      width: "220px",
    },
  ];
}

/** The op that made the call; for a call straight from a module's Python code the module. */
const callerOf = (row: SyncRow): string | null => row.op || (row.module ? `${row.module} (outside ops)` : null);

export const SYNC_COLUMNS: Column<SyncRow>[] = [
  { id: "call", header: "Call", definition: DEFINITIONS.syncCalls, value: (row) => row.call, width: "200px" },
  {
    id: "op",
    header: "Op",
    definition: DEFINITIONS.syncOp,
    value: callerOf,
    cell: (row) => (callerOf(row) ? <CutName name={callerOf(row)!} /> : undefined),
    missing: "none: Python",
    width: "220px",
  },
  {
    id: "time",
    header: "Time",
    definition: DEFINITIONS.syncTime,
    value: (row) => row.time_ns,
    sums: true,
    unit: "ns",
    width: "90px",
  },
  {
    id: "share",
    bar: true,
    header: "%",
    definition: "Share of the recorded iterations.",
    value: (row) => row.percent,
    unit: "percent",
    width: "76px",
  },
  {
    id: "calls",
    header: "Calls",
    definition: DEFINITIONS.calls,
    value: (row) => row.calls,
    sums: true,
    unit: "count",
    width: "76px",
  },
  {
    id: "average",
    header: "Mean",
    definition: DEFINITIONS.averageTime,
    value: (row) => row.average_ns,
    unit: "ns",
    width: "88px",
  },
  { id: "max", header: "Max", definition: DEFINITIONS.maxTime, value: (row) => row.max_ns, unit: "ns", width: "88px" },
  {
    id: "kind",
    header: "Kind",
    definition: DEFINITIONS.syncKind,
    value: (row) => row.kind,
    filter: "choice",
    width: "120px",
  },
  passColumn((row) => row.role, "104px"),
  {
    id: "inside",
    header: "Inside",
    definition: DEFINITIONS.syncInside,
    value: (row) => row.inner_op || null,
    missing: "–",
    width: "210px",
  },
];

export const KERNEL_COLUMNS: Column<LaunchedKernel>[] = [
  {
    id: "name",
    header: "Kernel",
    definition: DEFINITIONS.kernelName,
    value: (row) => row.name,
    cell: (row) => row.short_name,
    width: "320px",
  },
  {
    id: "delay",
    header: "Mean delay",
    definition: DEFINITIONS.launchDelay,
    value: (row) => row.mean_delay_ns,
    unit: "ns",
    width: "108px",
  },
  {
    id: "longest",
    header: "Longest delay",
    definition: DEFINITIONS.launchDelay,
    value: (row) => row.max_delay_ns,
    unit: "ns",
    width: "120px",
  },
  {
    id: "queue",
    header: "Mean queue",
    definition: DEFINITIONS.launchQueue,
    value: (row) => row.mean_queue,
    unit: "count",
    width: "108px",
  },
  {
    id: "deepest",
    header: "Deepest queue",
    definition: DEFINITIONS.launchQueue,
    value: (row) => row.max_queue,
    unit: "count",
    width: "120px",
  },
  {
    id: "calls",
    header: "Calls",
    definition: DEFINITIONS.calls,
    value: (row) => row.calls,
    sums: true,
    unit: "count",
    width: "76px",
  },
  {
    id: "call",
    header: "Launch call",
    definition: DEFINITIONS.launchCall,
    value: (row) => row.mean_call_ns,
    unit: "ns",
    width: "106px",
  },
  {
    id: "average",
    header: "Kernel",
    definition: DEFINITIONS.averageTime,
    value: (row) => row.average_ns,
    unit: "ns",
    width: "88px",
  },
  {
    id: "short",
    header: "Shorter than launch",
    definition: DEFINITIONS.launchShort,
    value: (row) => row.short_percent,
    unit: "percent",
    width: "148px",
  },
  {
    id: "kind",
    header: "Kind",
    definition: DEFINITIONS.kernelKind,
    value: (row) => row.kind,
    filter: "choice",
    width: "92px",
  },
];
