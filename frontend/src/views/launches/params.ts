/** What the Launches page keeps in the address. */
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

export const paceTable = new TableParam("pace");
export const gapsTable = new TableParam("gaps");
export const syncsTable = new TableParam("syncs", passFilter("role"));
export const delaysTable = new TableParam("delays");

export const LAUNCHES_PARAMS = [paceTable, gapsTable, syncsTable, delaysTable].flatMap(({ params }) => params);
