/** What the Distributed page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const ranksTable = new TableParam("ranks");
