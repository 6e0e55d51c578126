/** What the Runs page keeps in the address. */
import { choiceParam, textParam } from "../../state/param";
import { TableParam } from "../../state/tableParam";

/** The parts of the page. */
export const RUNS_TABS = ["all", "models", "sweep"] as const;

export type RunsTab = (typeof RUNS_TABS)[number];

export const tabParam = choiceParam("runs", RUNS_TABS);

/** The run that all are compared with; null means each model's own base. */
export const commonBaseParam = textParam("base");

/** The fact that a sweep goes over and what it draws; null leaves both to the server. */
export const overParam = textParam("over");
export const measureParam = textParam("measure");

/** What a share is of: "group:NAME", "op:TYPE" or "op:TYPE DIRECTION". */
export const shareParam = textParam("share");

export const runsTable = new TableParam("runs");
export const byModelTable = new TableParam("models");
export const sweepTable = new TableParam("sweep");

export const RUNS_PARAMS = [
  tabParam,
  commonBaseParam,
  overParam,
  measureParam,
  shareParam,
  ...runsTable.params,
  ...byModelTable.params,
  ...sweepTable.params,
];
