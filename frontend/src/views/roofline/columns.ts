/** The columns of the table of ops, which are the values of the chart, too. */
import { RooflineOp } from "../../api/columns";
import { tableColumns } from "../../components/table/declared";

export const COLUMNS = tableColumns(RooflineOp, {
  precision: {
    value: (row) => (row.precision ? row.precision + (row.tensor_cores === "no" ? ", no TC" : "") : null),
  },
  bound: { value: (row) => (row.bound === "unknown" ? null : row.bound) },
  measured: { value: (row) => (row.measured ? "counters" : "shapes") },
});
