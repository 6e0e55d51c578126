/** The tables of the page "What fits". Sizes come in megabytes of 10^6 bytes. */
import type { CheckpointRow, PlanFigure, PlanRow, ShardRow, StageRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";

const bytes = (mb: number | null): number | null => (mb === null ? null : mb * 1e6);

const PEAK: Column<PlanRow> = {
  id: "peak",
  header: "Peak allocated",
  definition: DEFINITIONS.planPeakAllocated,
  value: (row) => bytes(row.peak_allocated_mb),
  unit: "bytes",
  width: "128px",
};

const REST: Column<PlanRow>[] = [
  {
    id: "reserved",
    header: "Peak reserved",
    definition: DEFINITIONS.planPeakReserved,
    value: (row) => bytes(row.peak_reserved_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "limit",
    header: "Smallest limit",
    definition: DEFINITIONS.planSmallestLimit,
    value: (row) => bytes(row.smallest_limit_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "capacity",
    header: "Memory",
    definition: DEFINITIONS.planCapacity,
    value: (row) => bytes(row.capacity_mb),
    unit: "bytes",
    width: "90px",
  },
  { id: "verdict", header: "Fits", definition: DEFINITIONS.planVerdict, value: (row) => row.verdict, width: "120px" },
];

const PACE: Column<PlanRow>[] = [
  {
    id: "step",
    header: "Step",
    definition: DEFINITIONS.planStep,
    value: (row) => (row.step_ms === null ? null : row.step_ms * 1e6),
    unit: "ns",
    width: "90px",
  },
  {
    id: "rate",
    header: "Samples/s",
    definition: DEFINITIONS.planRate,
    value: (row) => row.samples_per_second,
    unit: "count",
    width: "90px",
  },
];

export const BATCHES: Column<PlanRow>[] = [
  {
    id: "batch",
    header: "Batch",
    definition: DEFINITIONS.planBatch,
    value: (row) => row.batch_size,
    unit: "count",
    width: "80px",
  },
  PEAK,
  ...REST,
  ...PACE,
];

export const GPUS: Column<PlanRow>[] = [
  { id: "gpu", header: "GPU", definition: DEFINITIONS.planGpu, value: (row) => row.gpu, width: "150px" },
  ...REST,
  {
    id: "largest",
    header: "Largest batch",
    definition: DEFINITIONS.planLargestBatch,
    value: (row) => row.largest_batch,
    unit: "count",
    width: "100px",
  },
  ...PACE,
];

export const CHECKPOINTS: Column<CheckpointRow>[] = [
  {
    id: "modules",
    header: "Modules",
    definition: DEFINITIONS.planCheckpoints,
    value: (row) => row.modules.length,
    unit: "count",
    width: "80px",
  },
  {
    id: "added",
    header: "With",
    definition: DEFINITIONS.planCheckpoints,
    value: (row) => row.modules[row.modules.length - 1] ?? "none",
    width: "180px",
  },
  {
    id: "peak",
    header: "Peak allocated",
    definition: DEFINITIONS.planPeakAllocated,
    value: (row) => bytes(row.peak_allocated_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "reserved",
    header: "Peak reserved",
    definition: DEFINITIONS.planPeakReserved,
    value: (row) => bytes(row.peak_reserved_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "step",
    header: "Step",
    definition: DEFINITIONS.planStep,
    value: (row) => (row.step_ms === null ? null : row.step_ms * 1e6),
    unit: "ns",
    width: "90px",
  },
];

export const FIGURES: Column<PlanFigure>[] = [
  { id: "name", header: "Memory", definition: DEFINITIONS.planInterval, value: (row) => row.name, width: "130px" },
  {
    id: "value",
    header: "Likely",
    definition: DEFINITIONS.planInterval,
    value: (row) => bytes(row.mb),
    unit: "bytes",
    width: "90px",
  },
  {
    id: "low",
    header: "At least",
    definition: DEFINITIONS.planInterval,
    value: (row) => bytes(row.low_mb),
    unit: "bytes",
    width: "90px",
  },
  {
    id: "high",
    header: "At most",
    definition: DEFINITIONS.planInterval,
    value: (row) => bytes(row.high_mb),
    unit: "bytes",
    width: "90px",
  },
];

export const SHARDS: Column<ShardRow>[] = [
  { id: "shard", header: "Shared by", definition: DEFINITIONS.planShard, value: (row) => row.shard, width: "100px" },
  {
    id: "peak",
    header: "Peak allocated",
    definition: DEFINITIONS.planPeakAllocated,
    value: (row) => bytes(row.peak_allocated_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "reserved",
    header: "Peak reserved",
    definition: DEFINITIONS.planPeakReserved,
    value: (row) => bytes(row.peak_reserved_mb),
    unit: "bytes",
    width: "128px",
  },
  { id: "verdict", header: "Fits", definition: DEFINITIONS.planVerdict, value: (row) => row.verdict, width: "128px" },
];

export const STAGES: Column<StageRow>[] = [
  {
    id: "first",
    header: "From",
    definition: DEFINITIONS.planStages,
    value: (row) => row.modules[0] ?? "",
    width: "140px",
  },
  {
    id: "last",
    header: "To",
    definition: DEFINITIONS.planStages,
    value: (row) => row.modules[row.modules.length - 1] ?? "",
    width: "140px",
  },
  {
    id: "peak",
    header: "Peak allocated",
    definition: DEFINITIONS.planPeakAllocated,
    value: (row) => bytes(row.peak_allocated_mb),
    unit: "bytes",
    width: "128px",
  },
  {
    id: "reserved",
    header: "Peak reserved",
    definition: DEFINITIONS.planPeakReserved,
    value: (row) => bytes(row.peak_reserved_mb),
    unit: "bytes",
    width: "128px",
  },
];
