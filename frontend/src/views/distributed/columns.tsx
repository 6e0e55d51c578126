/** The tables of a job. */
import * as columns from "../../api/columns";
import { tableColumns } from "../../components/table/declared";

export const DELAYS = tableColumns(columns.JobDelay, {
  certain: { value: (row) => (row.certain ? "yes" : "no") },
  why: { cell: (row) => <span class="wrap">{row.why}</span> },
});

/** Where all are certain. */
export const CERTAIN_DELAYS = DELAYS.filter(({ id }) => id !== "certain");

export const WHAT_IF = tableColumns(columns.JobWhatIf, {
  change: { cell: (row) => <span class="wrap">{row.change}</span> },
});

export const COLLECTIVES = tableColumns(columns.JobCollective);
