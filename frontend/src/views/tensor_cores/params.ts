/** What the Tensor Cores page keeps in the address. */
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

export const tensorCoresTable = new TableParam("tc", passFilter("direction"));
