/** What the Timeline page keeps in the address. */
import { indexParam, textParam } from "../../state/param";

/** Index of the iteration that is shown; null means the median one of the range. */
export const iterationParam = indexParam("iteration", { ofRun: true });

/** The selected event: a letter for what it is, and its row. */
export const eventParam = textParam("event", { ofRun: true }, /^[cgip]\d{1,15}$/);

export const TIMELINE_PARAMS = [iterationParam, eventParam];
