/** What the Compare page keeps in the address. */
import type { RunEntry } from "../../api/types";
import { Param, textParam } from "../../state/param";
import { NO_PROFILE, readProfile, readRange, writeProfile, writeRange, type RangeChoice } from "../../state/profile";
import { defaultPair } from "../../state/profileChoice";
import { profileParam } from "../../state/sharedParams";
import { passFilter } from "../../format/passes";
import { TableParam } from "../../state/tableParam";

const sideParam = (prefix: string): Param<RangeChoice> =>
  new Param({
    read: (pairs) => ({ ...readProfile(pairs, prefix), range: readRange(pairs, prefix) }),
    write: (side) => [...writeProfile(side, prefix), ...writeRange(side.range, prefix)],
  });

export const baseParam = sideParam("a.");
export const candidateParam = sideParam("b.");

/** What is drilled into: a bar of the waterfall, a module ("." for what lies in none), an op. */
export const bucketParam = textParam("bucket");
export const pairModuleParam = textParam("pairModule");
export const pairParam = textParam("pair");

/** All of a run, as one side. */
export const sideOf = (run: string): RangeChoice => ({ ...NO_PROFILE, range: null, run });

/** The two runs that the page compares: those of the address, else the pair that stands out among all runs. */
export function comparedSides(entries: readonly RunEntry[]): { a: RangeChoice; b: RangeChoice } {
  const pair = defaultPair(entries, profileParam.value.run);
  return {
    a: { ...baseParam.value, run: baseParam.value.run ?? pair?.a ?? profileParam.value.run },
    b: { ...candidateParam.value, run: candidateParam.value.run ?? pair?.b ?? null },
  };
}

export const compareTable = new TableParam("compare", passFilter("role"));

export const COMPARE_PARAMS = [
  baseParam,
  candidateParam,
  bucketParam,
  pairModuleParam,
  pairParam,
  ...compareTable.params,
];
