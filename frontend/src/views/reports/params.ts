/** What the Reports page keeps in the address. */
import { textParam, type Assignment } from "../../state/param";
import { TableParam } from "../../state/tableParam";

/** Which report is shown; null means the first. */
export const reportParam = textParam("report");

export const FIRST_REPORT = "averages";

export const reportTable = new TableParam("report");

export const REPORT_PARAMS = [reportParam, ...reportTable.params];

/** Another report has other columns: sorting and filters of the last one mean nothing. */
export const toReport = (name: string): Assignment[] => [reportParam.to(name), ...reportTable.toDefault()];
