/** The tables of a job against others. */
import * as columns from "../../api/columns";
import { tableColumns } from "../../components/table/declared";

export const PARTS_CHANGED = tableColumns(columns.JobPart);
export const RANKS_CHANGED = tableColumns(columns.JobRankChange);
export const COLLECTIVES_CHANGED = tableColumns(columns.JobCollectiveChange);
export const SCALING = tableColumns(columns.ScaledRow);
export const DELAYS_CHANGED = tableColumns(columns.JobDelayChange, {
  why: { cell: (row) => <span class="wrap">{row.why}</span> },
});
