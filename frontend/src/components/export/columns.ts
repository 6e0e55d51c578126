/** Columns of what several drawings are made of, and short ways to write others. */
import type { Slice } from "../../api/types";
import type { Unit } from "../../format/unit";
import type { Column } from "../table/columns";

/** A column of texts. */
export function text<Row>(
  header: string,
  value: (row: Row) => string | null,
  definition = "",
  width = "180px",
): Column<Row> {
  return { id: header, header, definition, value: (row) => value(row) || null, missing: "–", width };
}

/** A column of numbers. `key` where a heading alone would not say enough in a file. */
export function number<Row>(
  header: string,
  unit: Unit,
  value: (row: Row) => number | null,
  definition = "",
  key?: string,
): Column<Row> {
  return { id: key ?? header, header, definition, value, unit, width: "110px", ...(key && { key }) };
}

/** Of parts of the selected iterations. */
export const SLICES: Column<Slice>[] = [
  text("Part", (slice) => slice.label),
  number("Share", "percent", (slice) => slice.percent),
  { ...number<Slice>("Time", "ns", (slice) => slice.value_ns), sums: true },
];
