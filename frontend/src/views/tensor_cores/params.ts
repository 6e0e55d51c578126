/** What the Tensor Cores page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const tensorCoresTable = new TableParam("tc");
