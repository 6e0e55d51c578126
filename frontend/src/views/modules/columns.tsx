/** The columns of the module table. */
import { ModuleRow } from "../../api/columns";
import type { ModuleRow as Row } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { labelOf, type ModuleTree } from "./tree";

export function moduleColumns(hasGpu: boolean, model: string, typed: boolean, tree: ModuleTree): Column<Row>[] {
  const path: Partial<Column<Row>> = {
    value: (row) => row.path || labelOf(row, model),
    cell: (row) => {
      const left = row.children - (tree.below.get(row.path || ".")?.length ?? 0);
      return (
        <>
          {labelOf(row, model)}
          {row.role === null && left > 0 && <span class="muted"> ({left} left out)</span>}
        </>
      );
    },
  };
  return tableColumns(ModuleRow, { path }, hasGpu).filter(({ id }) => typed || id !== "type");
}
