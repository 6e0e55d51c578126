/** What the Distributed page keeps in the address. */
import { textParam } from "../../state/param";
import { TableParam } from "../../state/tableParam";

export const ranksTable = new TableParam("ranks");
export const jobCollectivesTable = new TableParam("collectives");

/** Ranks whose lines are drawn under each other, as "0,5,9"; null leaves them to the server. */
export const linesParam = textParam("lines", { ofRun: true });

/** The recorded step that is drawn; null leaves it to the server. */
export const stepParam = textParam("line_step", { ofRun: true });

/** What the cells of the heat map are: iterations of each rank, or "ROWS/COLUMNS", two dimensions of the mesh. */
export const heatParam = textParam("heat", { ofRun: true });

export const DISTRIBUTED_PARAMS = [
  ...ranksTable.params,
  ...jobCollectivesTable.params,
  linesParam,
  stepParam,
  heatParam,
];
