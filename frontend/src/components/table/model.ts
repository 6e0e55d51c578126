/**
 * Rows, columns, filters and sorting in; the rows to show out. Each column is indexed when it is first sorted or filtered by, or
 * before that while the browser has nothing else to do, so that 100,000 rows follow each key.
 */
import { indexColumn, type ColumnIndex } from "./columnIndex";
import type { Column } from "./columns";
import { filterOf } from "./filters";
import type { Shown } from "./tasks";

export interface TableState {
  /** Null is how the table is sorted at first. */
  sorting: { id: string; desc: boolean } | null;
  filters: { id: string; query: string }[];
}

/** Where a table keeps its state, if not in itself. Reading it while drawing draws again after a change. */
export interface TableOptions {
  value: TableState;
  /** The columns that were chosen; null as the table has them at first. */
  task?: { value: Shown | null };
}

export const AS_AT_FIRST: TableState = { sorting: null, filters: [] };

export interface TableModel<Row> {
  /** The rows that every filter accepts, unknown values last whichever way they are sorted; equal ones keep their order. */
  shown: (state: TableState) => Row[];
  /** The values that occur in a column, for a choice filter. */
  choicesOf: (id: string) => string[];
  /** Indexes the next column that is not yet; false when all are. */
  prepare: () => boolean;
}

/** Keep it as long as columns and rows stay: it remembers what it computed. */
export function createModel<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): TableModel<Row> {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const indices = new Map<string, ColumnIndex>();
  const indexOf = (id: string): ColumnIndex | null => {
    const column = byId.get(id);
    if (!column) return null;
    let index = indices.get(id);
    if (!index) indices.set(id, (index = indexColumn(column, rows)));
    return index;
  };
  const shown = ({ sorting, filters }: TableState): Row[] => {
    const tests = filters.flatMap(({ id, query }) => {
      const index = indexOf(id);
      return index ? [{ codes: index.codes, accepted: index.accepted(filterOf(byId.get(id)!, query)) }] : [];
    });
    const places = new Uint32Array(rows.length);
    let size = 0;
    for (let row = 0; row < rows.length; row++) {
      if (tests.every(({ codes, accepted }) => accepted[codes[row]!] === 1)) places[size++] = row;
    }
    const index = sorting && indexOf(sorting.id);
    const kept = places.subarray(0, size);
    return Array.from(index ? sorted(kept, index, sorting.desc) : kept, (row) => rows[row]!);
  };
  return {
    shown,
    choicesOf: (id) => {
      const index = indexOf(id);
      if (!index) return [];
      const { distinct, codes } = index;
      const unknown = codes.includes(distinct.length) ? [byId.get(id)!.missing ?? "unknown"] : [];
      return [...new Set([...distinct.map(String), ...unknown])].filter(Boolean);
    },
    prepare: () => {
      const next = columns.find((column) => !indices.has(column.id));
      if (next) indexOf(next.id);
      return next !== undefined;
    },
  };
}

/** Rows by the place of their value: a counting sort, which needs no comparison and keeps the order of equal rows. */
function sorted(rows: Uint32Array, { distinct, codes }: ColumnIndex, desc: boolean): Uint32Array {
  const unknown = distinct.length;
  const place = (row: number): number =>
    codes[row] === unknown ? unknown : desc ? unknown - 1 - codes[row]! : codes[row]!;
  const next = new Uint32Array(unknown + 2);
  for (const row of rows) next[place(row) + 1]! += 1;
  for (let at = 0; at <= unknown; at++) next[at + 1]! += next[at]!;
  const result = new Uint32Array(rows.length);
  for (const row of rows) result[next[place(row)]!++] = row;
  return result;
}
