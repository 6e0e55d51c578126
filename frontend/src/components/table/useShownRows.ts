/** The rows that fit the filters of a table: what other drawings of the same rows show. */
import { useMemo } from "preact/hooks";
import { useColumns } from "../sums";
import type { Column } from "./columns";
import { createModel, type TableOptions } from "./model";

export function useShownRows<Row>(columns: readonly Column<Row>[], rows: Row[], options: TableOptions): Row[] {
  const all = useColumns(columns);
  const { filters } = options.value;
  const model = useMemo(() => createModel(all, rows), [all, rows]);
  return useMemo(() => (filters.length === 0 ? rows : model.shown({ sorting: null, filters })), [model, rows, filters]);
}
