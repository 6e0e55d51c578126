/** What the Roofline page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const rooflineTable = new TableParam("roofline");
