/** Columns that were declared with their struct in Python, completed by what a page draws in their cells. */
import type { Column } from "./columns";
import type { Task } from "./tasks";

/** A column whose value is the field that it is named after. */
export interface Declared<Row> extends Omit<Column<Row>, "value" | "cell" | "key" | "perStep"> {
  id: keyof Row & string;
  /** From the field to the unit. */
  scale?: number;
  /** Left out without a GPU: it could only say "unknown". */
  gpu?: boolean;
  /** A field and its values for which the cell shows "–". */
  absent?: readonly string[];
}

/** `own` changes columns by their fields, or leaves them out. Without a GPU the time is that of the CPU. */
export function tableColumns<Row>(
  declared: readonly Declared<Row>[],
  own: { [Field in keyof Row]?: Partial<Column<Row>> | null } = {},
  hasGpu = true,
): Column<Row>[] {
  return declared
    .filter(({ id, gpu }) => own[id] !== null && (hasGpu || !gpu))
    .map(({ scale = 1, absent, gpu: _, tasks, ...column }) => {
      const isAbsent = (row: Row): boolean =>
        absent !== undefined && absent.indexOf(String(row[absent[0] as keyof Row]), 1) > 0;
      return {
        ...column,
        key: column.id,
        value: (row) => cellValue(row[column.id], column.unit && scale) ?? (!column.unit && isAbsent(row) ? "–" : null),
        ...(absent &&
          column.unit && { cell: (row: Row) => (isAbsent(row) ? <span class="missing">–</span> : undefined) }),
        ...(tasks && { tasks: hasGpu || !tasks.includes("cpu") ? tasks : [...new Set<Task>(["time", ...tasks])] }),
        ...own[column.id],
      };
    });
}

function cellValue(value: unknown, scale: number | undefined): string | number | null {
  if (typeof value === "number") {
    if (scale === undefined) return String(value);
    return scale === 1 ? value : Math.round(value * scale);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  return (Array.isArray(value) ? value.join(", ") : (value as string | null)) || null;
}
