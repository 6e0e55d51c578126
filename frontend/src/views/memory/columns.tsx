/** The tables of the Memory page. */
import * as columns from "../../api/columns";
import type { MemoryAllocation, MemoryCategory, MemoryGroup, MemoryIteration } from "../../api/types";
import { Defined } from "../../components/Term";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { colourOf } from "../../format/colours";
import { DEFINITIONS } from "../../format/definitions";
import { formatInteger } from "../../format/number";

export const CATEGORIES = tableColumns(columns.MemoryCategory, {
  label: {
    cell: (row) => (
      <>
        <span class="swatch" style={{ background: colourOf(row.key, 0, "memory") }} />{" "}
        <Defined text={row.definition}>{row.label}</Defined>
      </>
    ),
  },
});

/** The name of a group, in brackets where it stands for what has none. */
export function groupName(row: MemoryGroup): string {
  if (row.kind === "before") return "(before the recording)";
  if (row.kind === "held") return "(held between steps)";
  if (row.kind === "outside") return "(outside every op)";
  return row.name || "(no module)";
}

export const MODULES = tableColumns(columns.MemoryGroup, { name: { value: groupName }, direction: null });

export const OP_TYPES = tableColumns(columns.MemoryGroup, {
  name: { header: "Op type", definition: DEFINITIONS.opType, value: groupName },
});

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
  const own = tableColumns(columns.MemoryIteration, {
    number: { value: (row) => formatInteger(row.number), unit: undefined },
    peak_reserved_bytes: { missing: onGpu ? "unknown" : "–" },
  });
  return [...own, ...parts];
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

export const ALLOCATIONS = tableColumns(columns.MemoryAllocation, {
  op: { value: allocatedBy },
  category: {
    value: (row) => LABELS[row.category],
    cell: (row) => (
      <>
        <span class="swatch" style={{ background: colourOf(row.category, 0, "memory") }} />
        {LABELS[row.category]}
      </>
    ),
  },
});
