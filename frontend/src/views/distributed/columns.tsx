/** The tables of the Distributed page. */
import type { JobCollective, JobDelay, JobWhatIf } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { formatByteRate } from "../../format/number";

export const DELAYS: Column<JobDelay>[] = [
  {
    id: "rank",
    header: "Rank",
    definition: "The rank where the delay begins.",
    value: (row) => row.rank,
    width: "70px",
  },
  {
    id: "host",
    header: "Host",
    definition: "The rank's host, as its recording names it.",
    value: (row) => row.host || null,
    width: "120px",
  },
  { id: "cause", header: "Cause", definition: "What makes it late.", value: (row) => row.cause, width: "140px" },
  {
    id: "winnable",
    header: "Winnable",
    definition: DEFINITIONS.jobWinnable,
    value: (row) => row.winnable_ns,
    unit: "ns",
    bar: true,
    width: "110px",
  },
  {
    id: "owed",
    header: "Owed",
    definition: DEFINITIONS.jobOwed,
    value: (row) => row.owed_ns,
    unit: "ns",
    width: "110px",
  },
  {
    id: "significant",
    header: "Significant",
    definition: DEFINITIONS.jobSignificant,
    value: (row) => (row.significant ? "yes" : "may be chance"),
    width: "130px",
  },
  {
    id: "why",
    header: "Why",
    definition: "The figures that the cause rests on.",
    value: (row) => row.why,
    cell: (row) => <span class="wrap">{row.why}</span>,
    width: "460px",
  },
];

export const WHAT_IF: Column<JobWhatIf>[] = [
  {
    id: "change",
    header: "If",
    definition: "What is repaired, alone.",
    value: (row) => row.change,
    cell: (row) => <span class="wrap">{row.change}</span>,
    width: "300px",
  },
  {
    id: "step",
    header: "Step",
    definition: "The job's step then, by replaying all ranks.",
    value: (row) => row.step_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "low",
    header: "at least",
    definition: "Lower end of the interval.",
    value: (row) => row.low_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "high",
    header: "at most",
    definition: "Upper end of the interval.",
    value: (row) => row.high_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "saved",
    header: "Saved",
    definition: "Part of the step that it saves.",
    value: (row) => row.saved_percent,
    unit: "percent",
    bar: true,
    width: "100px",
  },
];

const rate = (value: number | null) => (value === null ? <span class="missing">unknown</span> : formatByteRate(value));

/** What calls of one kind have in common: they are a row of the table of collectives. */
type KindOfCalls = Pick<JobCollective, "operation" | "dimension" | "module" | "size">;

export const KIND_OF_CALLS: Column<KindOfCalls>[] = [
  {
    id: "operation",
    header: "Operation",
    definition: "What the calls do.",
    value: (row) => row.operation,
    filter: "choice",
    width: "140px",
  },
  {
    id: "dimension",
    header: "Dimension",
    definition: "Parallel dimension of the group.",
    value: (row) => row.dimension,
    filter: "choice",
    width: "100px",
  },
  {
    id: "module",
    header: "Module",
    definition: "Module or FSDP unit that the calls belong to.",
    value: (row) => row.module,
    width: "180px",
  },
  {
    id: "size",
    header: "Size",
    definition: "Class of message sizes.",
    value: (row) => row.size,
    filter: "choice",
    width: "110px",
  },
];

export const COLLECTIVES: Column<JobCollective>[] = [
  ...KIND_OF_CALLS,
  {
    id: "calls",
    header: "Calls",
    definition: "Calls of a rank per step.",
    value: (row) => row.calls_per_step,
    unit: "count_per_step",
    width: "80px",
  },
  {
    id: "exposed",
    header: "Exposed",
    definition: "Time in which nothing else ran on the GPU, mean of the ranks.",
    value: (row) => row.exposed_ns,
    unit: "ns",
    bar: true,
    width: "100px",
  },
  {
    id: "transfer",
    header: "Transfer",
    definition: DEFINITIONS.jobTransfer,
    value: (row) => row.transfer_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "waiting",
    header: "Waiting",
    definition: DEFINITIONS.jobWaiting,
    value: (row) => row.waiting_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "bus",
    header: "Bus bandwidth",
    definition: DEFINITIONS.jobBus,
    value: (row) => row.bus_bytes_per_second,
    cell: (row) => rate(row.bus_bytes_per_second),
    width: "120px",
  },
  {
    id: "attainable",
    header: "Attainable",
    definition: "The best bus bandwidth of such calls in this job, or what the link allows.",
    value: (row) => row.attainable_bytes_per_second,
    cell: (row) => rate(row.attainable_bytes_per_second),
    width: "110px",
  },
  {
    id: "hiding",
    header: "To hide it",
    definition: DEFINITIONS.jobHiding,
    value: (row) => row.hiding_bytes_per_second,
    cell: (row) => rate(row.hiding_bytes_per_second),
    width: "110px",
  },
  {
    id: "verdict",
    header: "Bound by",
    definition: DEFINITIONS.jobVerdict,
    value: (row) => row.verdict,
    filter: "choice",
    width: "130px",
  },
];
