/** Which profile and which of its iterations, and their spelling in the address. Pure. */
import { pair, readIndex, type Pairs } from "./param";

/** Which profile: null means "the default" (first run, newest session, lowest rank, last cycle). */
export interface ProfileChoice {
  run: string | null;
  session: string | null;
  rank: number | null;
  cycle: number | null;
  /** The op that delimits its iterations; null means the steps that were recorded. */
  keyNode: string | null;
}

/** Indices of iterations, both inclusive. */
export interface IterationRange {
  first: number;
  last: number;
}

/** A profile and some of its iterations: one side of a comparison. */
export interface RangeChoice extends ProfileChoice {
  range: IterationRange | null;
}

export const NO_PROFILE: ProfileChoice = { run: null, session: null, rank: null, cycle: null, keyNode: null };

/** `prefix` tells the sides of a comparison apart. */
export function readProfile(pairs: ReadonlyMap<string, string>, prefix = ""): ProfileChoice {
  const text = (key: string): string | null => pairs.get(prefix + key) || null;
  return {
    run: text("run"),
    session: text("session"),
    rank: readIndex(pairs, `${prefix}rank`),
    cycle: readIndex(pairs, `${prefix}cycle`),
    keyNode: text("keyNode"),
  };
}

export const writeProfile = (choice: ProfileChoice, prefix = ""): Pairs => [
  ...pair(`${prefix}run`, choice.run),
  ...pair(`${prefix}session`, choice.session),
  ...pair(`${prefix}rank`, choice.rank),
  ...pair(`${prefix}cycle`, choice.cycle),
  ...pair(`${prefix}keyNode`, choice.keyNode),
];

export function readRange(pairs: ReadonlyMap<string, string>, prefix = ""): IterationRange | null {
  const first = readIndex(pairs, `${prefix}first`);
  const last = readIndex(pairs, `${prefix}last`);
  return first === null || last === null || last < first ? null : { first, last };
}

export const writeRange = (range: IterationRange | null, prefix = ""): Pairs => [
  ...pair(`${prefix}first`, range?.first ?? null),
  ...pair(`${prefix}last`, range?.last ?? null),
];
