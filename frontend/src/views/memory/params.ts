/** What the Memory page keeps in the address. */
import { textParam } from "../../state/param";
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

/** Whose memory is shown: "cpu" or the number of a GPU; null means the first GPU. */
export const deviceParam = textParam("device", { ofRun: true });

export const allocationsTable = new TableParam("allocations", passFilter("direction"));

export const MEMORY_PARAMS = [deviceParam, ...allocationsTable.params];
