/**
 * A column of rows in; its distinct values in ascending order and each row's place among them out. It is computed once for
 * an array of rows: after that a sort is one counting pass and a filter looks at each distinct value once.
 */
import { formatUnit } from "../../format/unit";
import type { Column } from "./columns";
import type { Filter } from "./filters";

export interface ColumnIndex {
  /** Ascending: numbers by size, texts in natural order ("conv2" before "conv10", capitals or not). */
  distinct: readonly (string | number)[];
  /** Per row the place of its value in `distinct`; `distinct.length` is unknown. */
  codes: Uint32Array;
  /** Per place 1 where the filter accepts the value; one more entry for unknown. */
  accepted: (filter: Filter) => Uint8Array;
}

export function indexColumn<Row>(column: Column<Row>, rows: readonly Row[]): ColumnIndex {
  const values = rows.map((row) => column.value(row));
  const numeric = values.every((value) => value === null || typeof value === "number");
  const { distinct, codes } = numeric ? indexNumbers(values as (number | null)[]) : indexTexts(values);
  let texts: string[] | null = null;
  const accepted = (filter: Filter): Uint8Array => {
    if (filter.byText) texts ??= distinct.map((value) => shownText(column, value));
    const result = new Uint8Array(distinct.length + 1);
    for (let place = 0; place < distinct.length; place++)
      result[place] = filter.accepts(distinct[place]!, texts?.[place] ?? "") ? 1 : 0;
    // "unknown" finds what is not known, whatever the cell has in its place.
    result[distinct.length] = filter.accepts(null, `${column.missing ?? ""} unknown`.toLowerCase()) ? 1 : 0;
    return result;
  };
  return { distinct, codes, accepted };
}

function shownText<Row>(column: Column<Row>, value: string | number): string {
  return (typeof value === "number" && column.unit ? formatUnit(value, column.unit) : String(value)).toLowerCase();
}

type Indexed = Pick<ColumnIndex, "distinct" | "codes">;

function indexNumbers(values: readonly (number | null)[]): Indexed {
  // Sorting a typed array without a comparison of ours is native; NaN, which stands for null, comes last.
  const numbers = Float64Array.from(values, (value) => value ?? NaN);
  const sorted = numbers.slice().sort();
  let size = 0;
  for (const value of sorted)
    if (!Number.isNaN(value) && (size === 0 || value !== sorted[size - 1])) sorted[size++] = value;
  const distinct = sorted.subarray(0, size);
  const codes = new Uint32Array(values.length);
  for (let row = 0; row < codes.length; row++) codes[row] = placeOf(distinct, numbers[row]!);
  return { distinct: Array.from(distinct), codes };
}

/** Where `value` is in an ascending array that holds it; the length for NaN. */
function placeOf(ascending: Float64Array, value: number): number {
  if (Number.isNaN(value)) return ascending.length;
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function indexTexts(values: readonly (string | number | null)[]): Indexed {
  const found = new Map<string, number>();
  const unknown = -1;
  const firstSeen = new Int32Array(values.length);
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (value === null) {
      firstSeen[row] = unknown;
      continue;
    }
    const text = String(value);
    let place = found.get(text);
    if (place === undefined) found.set(text, (place = found.size));
    firstSeen[row] = place;
  }
  const texts = [...found.keys()];
  const keys = texts.map(naturalKey);
  const order = Uint32Array.from(texts, (_, place) => place).sort((a, b) =>
    keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b,
  );
  const rank = new Uint32Array(texts.length);
  for (let place = 0; place < order.length; place++) rank[order[place]!] = place;
  return {
    distinct: Array.from(order, (place) => texts[place]!),
    codes: Uint32Array.from(firstSeen, (place) => (place === unknown ? texts.length : rank[place]!)),
  };
}

/**
 * A text whose plain comparison gives the natural order: lower case, and before each number the count of its digits. An
 * Intl.Collator with `numeric` gives much the same order and takes three times as long for 100,000 names.
 */
function naturalKey(text: string): string {
  return text.toLowerCase().replace(/\d+/g, (digits) => String.fromCharCode(DIGIT_BEFORE_0 + digits.length) + digits);
}

const DIGIT_BEFORE_0 = 47;
