/** The tables of a job against others. */
import type { JobCollectiveChange, JobDelayChange, JobPart, JobRankChange, ScaledRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { exactNs, formatNsDifference } from "../../format/duration";
import { formatCountPerStep } from "../../format/number";
import { KIND_OF_CALLS } from "./columns";

function Change({ ns }: { ns: number | null }) {
  if (ns === null) return <span class="missing">unknown</span>;
  return (
    <span class="num" title={exactNs(ns)}>
      {formatNsDifference(ns)}
    </span>
  );
}

export const PARTS_CHANGED: Column<JobPart>[] = [
  {
    id: "part",
    header: "Part",
    definition: "What the GPU does, mean of all ranks.",
    value: (row) => row.part,
    width: "180px",
  },
  {
    id: "base",
    header: "Base",
    definition: "In the other job.",
    value: (row) => row.base_ns,
    unit: "ns",
    width: "110px",
  },
  {
    id: "candidate",
    header: "This job",
    definition: "In the job of this page.",
    value: (row) => row.candidate_ns,
    unit: "ns",
    width: "110px",
  },
  {
    id: "change",
    header: "Change",
    definition: "The parts add up to the step.",
    value: (row) => row.difference_ns,
    unit: "ns",
    cell: (row) => <Change ns={row.difference_ns} />,
    width: "110px",
  },
];

export const DELAYS_CHANGED: Column<JobDelayChange>[] = [
  {
    id: "what",
    header: "Delay",
    definition: DEFINITIONS.jobDelayChange,
    value: (row) => row.what,
    width: "80px",
  },
  { id: "rank", header: "Rank", definition: "Where it begins.", value: (row) => row.rank, width: "70px" },
  { id: "cause", header: "Cause", definition: "What makes it late.", value: (row) => row.cause, width: "140px" },
  {
    id: "base",
    header: "Base",
    definition: `In the other job. ${DEFINITIONS.jobWinnable}`,
    value: (row) => row.base_winnable_ns,
    unit: "ns",
    missing: "–",
    width: "100px",
  },
  {
    id: "now",
    header: "This job",
    definition: DEFINITIONS.jobWinnable,
    value: (row) => row.winnable_ns,
    unit: "ns",
    missing: "–",
    width: "100px",
  },
  {
    id: "why",
    header: "Why",
    definition: "The figures that the cause rests on.",
    value: (row) => row.why,
    cell: (row) => <span class="wrap">{row.why}</span>,
    width: "400px",
  },
];

const CHANGED_PARTS = [
  ["compute", "Compute", (row: JobRankChange) => row.compute_ns, DEFINITIONS.jobCompute],
  ["transfer", "Transfer", (row: JobRankChange) => row.transfer_ns, DEFINITIONS.jobTransfer],
  ["waiting", "Waiting", (row: JobRankChange) => row.waiting_ns, DEFINITIONS.jobWaiting],
  ["bubble", "Bubble", (row: JobRankChange) => row.bubble_ns, DEFINITIONS.jobBubble],
  ["host", "Host", (row: JobRankChange) => row.host_ns, DEFINITIONS.jobHost],
  ["step", "Step", (row: JobRankChange) => row.step_ns, DEFINITIONS.jobStep],
] as const;

export const RANKS_CHANGED: Column<JobRankChange>[] = [
  { id: "rank", header: "Rank", definition: "Of this job.", value: (row) => row.rank, width: "70px" },
  {
    id: "base_ranks",
    header: "Against",
    definition: DEFINITIONS.jobBaseRanks,
    value: (row) => row.base_ranks,
    width: "100px",
  },
  ...CHANGED_PARTS.map(
    ([id, header, value, definition]): Column<JobRankChange> => ({
      id,
      header,
      definition: `Change. ${definition}`,
      value,
      unit: "ns",
      cell: (row) => <Change ns={value(row)} />,
      width: "110px",
    }),
  ),
];

const counts = (value: number | null) => (value === null ? <span class="missing">–</span> : formatCountPerStep(value));

export const COLLECTIVES_CHANGED: Column<JobCollectiveChange>[] = [
  ...KIND_OF_CALLS,
  {
    id: "base_calls",
    header: "Base calls",
    definition: "Calls of a rank per step in the other job.",
    value: (row) => row.base_calls,
    cell: (row) => counts(row.base_calls),
    width: "90px",
  },
  {
    id: "calls",
    header: "Calls",
    definition: "Calls of a rank per step in this job.",
    value: (row) => row.calls,
    cell: (row) => counts(row.calls),
    width: "80px",
  },
  {
    id: "base_exposed",
    header: "Base exposed",
    definition: "Time in which nothing else ran on the GPU, in the other job.",
    value: (row) => row.base_exposed_ns,
    unit: "ns",
    missing: "–",
    width: "110px",
  },
  {
    id: "exposed",
    header: "Exposed",
    definition: "Time in which nothing else ran on the GPU, in this job.",
    value: (row) => row.exposed_ns,
    unit: "ns",
    missing: "–",
    width: "100px",
  },
  {
    id: "change",
    header: "Change",
    definition: DEFINITIONS.jobExposedChange,
    value: (row) => row.difference_ns,
    unit: "ns",
    cell: (row) => <Change ns={row.difference_ns} />,
    width: "100px",
  },
];

const FACTORS = [
  ["compute", "Compute", (row: ScaledRow) => row.compute, DEFINITIONS.jobFactorCompute],
  ["host", "Host", (row: ScaledRow) => row.host, DEFINITIONS.jobFactorHost],
  ["transfer", "Transfer", (row: ScaledRow) => row.transfer, DEFINITIONS.jobFactorTransfer],
  ["waiting", "Waiting", (row: ScaledRow) => row.waiting, DEFINITIONS.jobFactorWaiting],
  ["bubble", "Bubble", (row: ScaledRow) => row.bubble, DEFINITIONS.jobFactorBubble],
] as const;

export const SCALING: Column<ScaledRow>[] = [
  { id: "job", header: "Job", definition: "The run.", value: (row) => row.job, width: "180px" },
  { id: "gpus", header: "GPUs", definition: "Of the job.", value: (row) => row.gpus, unit: "count", width: "70px" },
  {
    id: "step",
    header: "Step",
    definition: DEFINITIONS.jobStep,
    value: (row) => row.step_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "work",
    header: "Work",
    definition: DEFINITIONS.jobWork,
    value: (row) => row.work,
    unit: "ratio",
    width: "80px",
  },
  {
    id: "throughput",
    header: "Speed",
    definition: "Work per time over that of the smallest job.",
    value: (row) => row.throughput,
    unit: "ratio",
    width: "80px",
  },
  {
    id: "efficiency",
    header: "Efficiency",
    definition: DEFINITIONS.jobScaling,
    value: (row) => row.efficiency_percent,
    unit: "percent",
    bar: true,
    width: "110px",
  },
  ...FACTORS.map(
    ([id, header, value, definition]): Column<ScaledRow> => ({
      id,
      header: `× ${header.toLowerCase()}`,
      definition,
      value,
      unit: "ratio",
      width: "100px",
    }),
  ),
  {
    id: "flops",
    header: "FLOPs utilization",
    definition: DEFINITIONS.jobFlops,
    value: (row) => row.flops_utilization_percent,
    unit: "percent",
    width: "130px",
  },
];
