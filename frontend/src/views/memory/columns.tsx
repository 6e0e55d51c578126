/** The tables of the Memory page. */
import type { MemoryAllocation, MemoryCategory, MemoryGroup, MemoryIteration } from "../../api/types";
import { CutName } from "../../components/CutName";
import { Defined } from "../../components/Term";
import type { Column } from "../../components/table/columns";
import { colourOf } from "../../format/colours";
import { DEFINITIONS } from "../../format/definitions";
import { formatInteger } from "../../format/number";
import { passColumn } from "../passColumn";

export const CATEGORIES: Column<MemoryCategory>[] = [
  {
    id: "category",
    header: "Category",
    definition: DEFINITIONS.memoryCategory,
    value: (row) => row.label,
    cell: (row) => (
      <>
        <span class="swatch" style={{ background: colourOf(row.key, 0, "memory") }} />{" "}
        <Defined text={row.definition}>{row.label}</Defined>
      </>
    ),
    width: "150px",
  },
  {
    id: "bytes",
    header: "At the peak",
    definition: DEFINITIONS.memoryAtPeak,
    value: (row) => row.bytes,
    unit: "bytes",
    width: "102px",
  },
  {
    id: "share",
    header: "%",
    definition: DEFINITIONS.memoryPercent,
    value: (row) => row.percent,
    unit: "percent",
    missing: "–",
    width: "70px",
  },
  {
    id: "own",
    header: "Own peak",
    definition: DEFINITIONS.memoryOwnPeak,
    value: (row) => row.own_peak_bytes,
    unit: "bytes",
    width: "88px",
  },
];

/** The name of a group, in brackets where it stands for what has none. */
export function groupName(row: MemoryGroup): string {
  if (row.kind === "before") return "(before the recording)";
  if (row.kind === "held") return "(held between steps)";
  if (row.kind === "outside") return "(outside every op)";
  return row.name || "(no module)";
}

const GROUP: Column<MemoryGroup>[] = [
  {
    id: "bytes",
    header: "At the peak",
    definition: DEFINITIONS.memoryAtPeak,
    value: (row) => row.bytes,
    unit: "bytes",
    width: "100px",
  },
  {
    id: "share",
    header: "%",
    definition: DEFINITIONS.memoryPercent,
    value: (row) => row.percent,
    unit: "percent",
    missing: "–",
    width: "76px",
  },
  {
    id: "own",
    header: "Own peak",
    definition: DEFINITIONS.memoryOwnPeak,
    value: (row) => row.own_peak_bytes,
    unit: "bytes",
    width: "96px",
  },
  {
    id: "count",
    header: "Alive",
    definition: DEFINITIONS.memoryAlive,
    value: (row) => row.allocations,
    unit: "count",
    missing: "–",
    width: "76px",
  },
];

export const MODULES: Column<MemoryGroup>[] = [
  {
    id: "name",
    header: "Module",
    definition: DEFINITIONS.memoryModule,
    value: groupName,
    cell: (row) => <CutName name={groupName(row)} />,
    width: "190px",
  },
  ...GROUP,
];

export const OP_TYPES: Column<MemoryGroup>[] = [
  { id: "name", header: "Op type", definition: DEFINITIONS.opType, value: groupName, width: "170px" },
  passColumn((row) => row.direction, "92px"),
  ...GROUP,
];

const iteration = (onGpu: boolean): Column<MemoryIteration>[] => [
  {
    id: "number",
    header: "Iteration",
    definition: "Its number, as the training counts it; select one to see only it.",
    value: (row) => formatInteger(row.number),
    width: "96px",
  },
  {
    id: "peak",
    header: "Peak allocated",
    definition: DEFINITIONS.memoryPeakAllocated,
    value: (row) => row.peak_allocated_bytes,
    unit: "bytes",
    width: "116px",
  },
  {
    id: "reserved",
    header: "Peak reserved",
    definition: DEFINITIONS.memoryPeakReserved,
    value: (row) => row.peak_reserved_bytes,
    unit: "bytes",
    missing: onGpu ? "unknown" : "–",
    width: "122px",
  },
  {
    id: "growth",
    header: "Growth",
    definition: DEFINITIONS.memoryGrowth,
    value: (row) => row.growth_bytes,
    unit: "bytes",
    width: "88px",
  },
  {
    id: "allocations",
    header: "Allocations",
    definition: "Allocations that it made.",
    value: (row) => row.allocations,
    unit: "count",
    width: "98px",
  },
];

/** With the categories at each iteration's own peak. The CPU's allocator reserves nothing; on a GPU it may be unknown. */
export function iterationColumns(categories: readonly MemoryCategory[], onGpu: boolean): Column<MemoryIteration>[] {
  const parts = categories.map(
    (category, index): Column<MemoryIteration> => ({
      id: category.key,
      header: category.label,
      definition: `At the iteration's own peak. ${category.definition}`,
      value: (row) => row.category_bytes[index] ?? null,
      unit: "bytes",
      width: index === 0 ? "160px" : "124px",
    }),
  );
  return [...iteration(onGpu), ...parts];
}

const LABELS: Record<MemoryAllocation["category"], string> = {
  before: "Before the recording",
  parameters: "Parameters",
  buffers: "Buffers",
  optimizer_state: "Optimizer state",
  gradients: "Gradients",
  activations: "Activations",
  casts: "Casts",
  activation_gradients: "Gradients of activations",
  temporary: "Temporary",
  workspaces: "Workspaces",
  communication: "Communication",
  other: "Input and other",
};

/** What made an allocation; what is held all the time, by its module, has an id below 0. */
function allocatedBy(row: MemoryAllocation): string {
  if (row.op) return row.op;
  return row.id < 0 ? row.module || "(held between steps)" : "(outside every op)";
}

export const ALLOCATIONS: Column<MemoryAllocation>[] = [
  {
    id: "op",
    header: "Allocated by",
    definition: DEFINITIONS.memoryOp,
    value: allocatedBy,
    cell: (row) => <CutName name={allocatedBy(row)} />,
    width: "280px",
  },
  passColumn((row) => row.direction, "96px"),
  {
    id: "bytes",
    header: "Size",
    definition: DEFINITIONS.memorySize,
    value: (row) => row.bytes,
    unit: "bytes",
    width: "96px",
  },
  {
    id: "share",
    header: "%",
    definition: DEFINITIONS.memoryPercent,
    value: (row) => row.percent,
    unit: "percent",
    missing: "–",
    width: "76px",
  },
  {
    id: "category",
    header: "Category",
    definition: DEFINITIONS.memoryCategory,
    value: (row) => LABELS[row.category],
    filter: "choice",
    cell: (row) => (
      <>
        <span class="swatch" style={{ background: colourOf(row.category, 0, "memory") }} /> {LABELS[row.category]}
      </>
    ),
    width: "150px",
  },
  {
    id: "iteration",
    header: "Iteration",
    definition: "The iteration that allocated it.",
    value: (row) => row.iteration,
    unit: "count",
    missing: "outside",
    width: "88px",
  },
  {
    id: "freed",
    header: "Freed in",
    definition: DEFINITIONS.memoryFreed,
    value: (row) => row.freed || null,
    missing: "not in the recording",
    width: "150px",
  },
  {
    id: "lifetime",
    header: "Lived",
    definition: DEFINITIONS.memoryLifetime,
    value: (row) => row.lifetime_ns,
    unit: "ns",
    missing: "–",
    width: "96px",
  },
  {
    id: "module",
    header: "Module",
    definition: DEFINITIONS.memoryModule,
    value: (row) => row.module || null,
    missing: "–",
    width: "190px",
  },
];
