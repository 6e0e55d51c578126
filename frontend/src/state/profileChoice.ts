/** The runs of the logdir and what the URL asks for in, the profile to request and the choices of the pickers out. */
import type { RunEntry } from "../api/types";
import type { ProfileChoice } from "./profile";

/** A profile choice with every part filled in, and what else could be picked. */
export interface ResolvedChoice {
  run: string;
  session: string | null;
  rank: number | null;
  cycle: number | null;
  runs: string[];
  sessions: string[];
  ranks: number[];
  cycles: number[];
  /** The entry of the index that it names, null when the logdir has no such run. */
  entry: RunEntry | null;
}

/** Fills the gaps of `choice` as the routes do: newest session, lowest rank, last cycle; the first run that can be read. */
export function resolveChoice(entries: readonly RunEntry[], choice: ProfileChoice): ResolvedChoice | null {
  const runs = unique(entries.map((entry) => entry.run)).sort(NATURAL.compare);
  const run = choice.run ?? (entries.find((entry) => !entry.unreadable) ?? entries[0])?.run;
  if (run === undefined) return null;
  const ofRun = entries.filter((entry) => entry.run === run);
  const sessions = unique(ofRun.map((entry) => entry.session));
  const session = choice.session ?? newestSession(ofRun);
  const ofSession = ofRun.filter((entry) => entry.session === session);
  const ranks = unique(ofSession.map((entry) => entry.rank)).sort((x, y) => x - y);
  const rank = choice.rank ?? ranks[0] ?? null;
  const entry = ofSession.find((candidate) => candidate.rank === rank) ?? null;
  const cycles = entry?.cycles ?? [];
  const cycle = choice.cycle ?? cycles[cycles.length - 1] ?? null;
  return { run, session, rank, cycle, runs, sessions, ranks, cycles, entry };
}

function newestSession(entries: readonly RunEntry[]): string | null {
  let newest: RunEntry | null = null;
  for (const entry of entries) {
    if (newest === null || (entry.created_unix_ns ?? 0) >= (newest.created_unix_ns ?? 0)) newest = entry;
  }
  return newest?.session ?? null;
}

/** One line that tells runs apart in a picker; the device only where the runs differ in it. */
export function describeEntry(entry: RunEntry, entries: readonly RunEntry[]): string {
  const oneDevice = entries.length > 1 && entries.every((other) => other.device === entry.device);
  return [entry.model, entry.precision, oneDevice ? null : entry.device].filter(Boolean).join(" · ");
}

/** "run2" before "run10". */
const NATURAL = new Intl.Collator("en", { numeric: true });

const unique = <T>(values: readonly T[]): T[] => [...new Set(values)];

const isMixed = (entry: RunEntry): boolean =>
  /amp|autocast|mixed|fp16|bf16|float16|half/i.test(`${entry.precision ?? ""}`);
const isFull = (entry: RunEntry): boolean =>
  !isMixed(entry) && /fp32|float32|tf32|full|single/i.test(entry.precision ?? "");

export interface Pair {
  a: string;
  b: string;
}

/**
 * A full-precision run and an AMP run of the same model: the pair that holds `current`, else that of the longest step on the device
 * that most runs have. Null without any.
 */
export function precisionPair(entries: readonly RunEntry[], current: string | null): Pair | null {
  const first = offered(entries);
  const runsOn = (device: string | null): number => first.filter((entry) => entry.device === device).length;
  const pairs = first
    .filter(isFull)
    .sort(
      (x, y) => runsOn(y.device) - runsOn(x.device) || (y.recorded_iteration_ns ?? 0) - (x.recorded_iteration_ns ?? 0),
    )
    .flatMap((a) => first.filter((b) => isMixed(b) && b.model === a.model).map((b) => ({ a: a.run, b: b.run })));
  return pairs.find((pair) => pair.a === current || pair.b === current) ?? pairs[0] ?? null;
}

/** One entry of each run; unreadable runs only where fewer than two can be read. */
function offered(entries: readonly RunEntry[]): RunEntry[] {
  const readable = new Set(entries.filter((entry) => !entry.unreadable).map((entry) => entry.run));
  const some = readable.size >= 2 ? entries.filter((entry) => readable.has(entry.run)) : entries;
  return some.filter((entry, index) => some.findIndex((other) => other.run === entry.run) === index);
}

/** The two runs to compare at first: the pair of `precisionPair`, else the first two runs. Null with fewer than two runs. */
export function defaultPair(entries: readonly RunEntry[], current: string | null): Pair | null {
  const chosen = precisionPair(entries, current);
  if (chosen) return chosen;
  const first = offered(entries);
  if (first.length < 2) return null;
  const a = first.find((entry) => entry.run === current) ?? first[0]!;
  const b = first.find((entry) => entry.run !== a.run)!;
  return { a: a.run, b: b.run };
}
