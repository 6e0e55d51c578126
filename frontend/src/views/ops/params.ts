/** What the Ops page keeps in the address. */
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

export const opsTable = new TableParam("ops", passFilter("role"));
