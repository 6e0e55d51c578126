/** What the Distributed page keeps in the address. */
import { pair, Param, textParam } from "../../state/param";
import { TableParam } from "../../state/tableParam";

export const ranksTable = new TableParam("ranks");
export const jobCollectivesTable = new TableParam("collectives");
export const changedRanksTable = new TableParam("changed_ranks");
export const changedCollectivesTable = new TableParam("changed_collectives");

/** Runs that the server compares one with at most. */
export const MOST_JOBS = 16;

/** Runs that the job is shown against, the base first; with a line break between them, which no name holds. */
export const againstParam = new Param<readonly string[]>({
  read: (pairs) => [...new Set((pairs.get("against") ?? "").split("\n").filter(Boolean))].slice(0, MOST_JOBS),
  write: (value) => pair("against", value.join("\n") || null),
});

/** Ranks whose lines are drawn under each other, as "0,5,9"; null leaves them to the server. */
export const linesParam = textParam("lines", { ofRun: true });

/** The recorded step that is drawn; null leaves it to the server. */
export const stepParam = textParam("line_step", { ofRun: true });

/** What the cells of the heat map are: iterations of each rank, or "ROWS/COLUMNS", two dimensions of the mesh. */
export const heatParam = textParam("heat", { ofRun: true });

export const DISTRIBUTED_PARAMS = [
  ...ranksTable.params,
  ...jobCollectivesTable.params,
  ...changedRanksTable.params,
  ...changedCollectivesTable.params,
  againstParam,
  linesParam,
  stepParam,
  heatParam,
];
