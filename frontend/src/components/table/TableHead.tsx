/** The headings of a table, which sort it, and the filters below them. */
import { ColumnFilter } from "./ColumnFilter";
import type { Table } from "./useTable";

/** Added to the definition of a sum. */
const PER_STEP = "Shown per step: divided by the number of selected iterations.";

export function TableHead<Row>({ table }: { table: Table<Row> }) {
  return (
    <thead>
      <tr>
        {table.columns.map((column) => {
          const sorting = table.sorting?.id === column.id ? table.sorting : null;
          const direction = sorting ? (sorting.desc ? "descending" : "ascending") : undefined;
          return (
            <th key={column.id} scope="col" aria-sort={direction} class={column.unit ? "right" : ""}>
              <button
                type="button"
                class="sort"
                data-tip={column.perStep ? `${column.definition} ${PER_STEP}` : column.definition}
                onClick={() => table.sortBy(column)}
              >
                {column.header}
                <span class="sort-mark" aria-hidden="true">
                  {sorting ? (sorting.desc ? " ▾" : " ▴") : ""}
                </span>
              </button>
              {table.filtering && (
                <ColumnFilter
                  column={column}
                  query={table.queryOf(column.id)}
                  choices={table.choicesOf(column.id)}
                  onChange={(value) => table.filterBy(column.id, value)}
                />
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
