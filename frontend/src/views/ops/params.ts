/** What the Ops page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const opsTable = new TableParam("ops");
