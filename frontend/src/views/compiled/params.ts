/** What the page Compiled code keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const compiledTable = new TableParam("compiled");
