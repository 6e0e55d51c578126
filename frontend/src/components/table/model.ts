/** Rows, columns, filters and sorting in; the rows to show out. TanStack Table does the work, this ties it to our columns. */
import {
  createTable,
  getCoreRowModel,
  getFilteredRowModel,
  getSortedRowModel,
  type ColumnDef,
  type ColumnFiltersState,
  type SortingState,
} from "@tanstack/table-core";
import type { Column } from "./columns";
import { choiceFilter, numberFilter, textFilter, type Predicate } from "./filters";

export interface TableState {
  sorting: SortingState;
  filters: ColumnFiltersState;
}

function predicate<Row>(column: Column<Row>, query: string): Predicate {
  if (column.filter === "choice") return choiceFilter(query, column.missing);
  return column.unit ? numberFilter(query, column.unit) : textFilter(query);
}

function definition<Row>(column: Column<Row>): ColumnDef<Row> {
  // One parsed filter per query, not one per row.
  let cached: { query: string; test: Predicate } | null = null;
  return {
    id: column.id,
    // TanStack keeps undefined at the end whichever way the column is sorted; null it would sort as 0.
    accessorFn: (row) => column.value(row) ?? undefined,
    sortUndefined: "last",
    sortDescFirst: column.unit !== undefined,
    sortingFn: column.unit ? "basic" : "alphanumeric",
    filterFn: (row, id, query: string) => {
      if (cached?.query !== query) cached = { query, test: predicate(column, query) };
      return cached.test(row.getValue<string | number | undefined>(id) ?? null);
    },
  };
}

/** A function of (rows, state); keep it as long as the columns stay, it remembers what it computed. */
export function createModel<Row>(columns: readonly Column<Row>[]): (rows: Row[], state: TableState) => Row[] {
  const definitions = columns.map(definition);
  const table = createTable<Row>({
    data: [],
    columns: definitions,
    state: {},
    onStateChange: () => {},
    renderFallbackValue: null,
    getCoreRowModel: getCoreRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
    getSortedRowModel: getSortedRowModel(),
    autoResetAll: false,
  });
  return (rows, { sorting, filters }) => {
    table.setOptions((previous) => ({
      ...previous,
      data: rows,
      state: { ...table.initialState, sorting, columnFilters: filters },
    }));
    return table.getRowModel().rows.map((row) => row.original);
  };
}

/** The values that occur in a column, for a choice filter. */
export function choicesOf<Row>(column: Column<Row>, rows: readonly Row[]): string[] {
  return [...new Set(rows.map((row) => String(column.value(row) ?? column.missing ?? "unknown")))].filter(Boolean).sort();
}
