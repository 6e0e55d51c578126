/** What the Roofline page keeps in the address. */
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

export const rooflineTable = new TableParam("roofline", passFilter("direction"));
