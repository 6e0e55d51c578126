/** What the Kernels page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const kernelsTable = new TableParam("kernels");
