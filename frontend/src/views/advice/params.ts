/** What the Advice page keeps in the address. */
import { pair, Param, readNames, namesParam, textParam } from "../../state/param";
import { profileParam } from "../../state/sharedParams";

export const SEVERITIES = ["high", "medium", "low"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** Findings that the user marked as done: rules, and the run whose findings they are; null means the run that is shown. */
export interface Resolved {
  run: string | null;
  rules: readonly string[];
}

export const findingParam = textParam("finding", { ofRun: true, namesOne: true });

/** Which findings are shown; none named means all. */
export const severitiesParam = new Param<readonly Severity[]>({
  read: (pairs) => {
    const named = readNames(pairs.get("severity"));
    return SEVERITIES.filter((severity) => named.includes(severity));
  },
  write: (severities) => pair("severity", severities.join(",") || null),
});

/** Rules whose findings the user does not want to see, in any run. */
export const dismissedParam = namesParam("dismissed");

export const resolvedParam = new Param<Resolved>({
  read: (pairs) => {
    const rules = readNames(pairs.get("resolved"));
    return { run: rules.length > 0 ? pairs.get("resolvedRun") || pairs.get("run") || null : null, rules };
  },
  write: ({ run, rules }) => [
    ...pair("resolved", rules.join(",") || null),
    ...pair("resolvedRun", rules.length > 0 && run !== profileParam.value.run ? run : null),
  ],
});

/** Which forecast is shown; null means the one that gains most. */
export const precisionParam = textParam("precision");

export const ADVICE_PARAMS = [findingParam, severitiesParam, dismissedParam, resolvedParam, precisionParam];
