/** The tables of the page Tried. */
import * as columns from "../../api/columns";
import { tableColumns } from "../../components/table/declared";

export const TRIED = tableColumns(columns.TriedRow, {
  remedy: { value: (row) => row.title || row.remedy },
  verdict: {
    cell: (row) => <span title={[row.verdict_text, row.changes].filter(Boolean).join(" ")}>{row.verdict}</span>,
  },
});

export const NOT_TRIED = tableColumns(columns.NotTriedRow, { remedy: { value: (row) => row.title || row.remedy } });
