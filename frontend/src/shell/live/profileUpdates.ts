/** Two lists of runs, the one shown and the one that came, and what the user looks at in; what is new out. Pure. */
import type { RunEntry } from "../../api/types";
import { resolveChoice, type ResolvedChoice } from "../../state/profileChoice";
import type { ProfileChoice } from "../../state/profile";

export interface ProfileUpdates {
  /** Runs that were not there. */
  runs: string[];
  /** Runs with another recording than before: what was answered for their latest one is out of date. */
  changed: string[];
  /** The latest recording of the run that is shown, where it is another one than before. */
  latest: ResolvedChoice | null;
  /** What was shown until now. */
  before: ResolvedChoice | null;
}

export function updatesOf(
  before: readonly RunEntry[],
  after: readonly RunEntry[],
  choice: ProfileChoice,
): ProfileUpdates | null {
  const old = recordings(before);
  const now = recordings(after);
  const runs = [...now.keys()].filter((run) => !old.has(run));
  const changed = [...now].filter(([run, text]) => old.has(run) && old.get(run) !== text).map(([run]) => run);
  const gone = [...old.keys()].some((run) => !now.has(run));
  if (runs.length === 0 && changed.length === 0 && !gone) return null;
  const latestOf = (entries: readonly RunEntry[]) => resolveChoice(entries, { ...choice, session: null, cycle: null });
  const latest = choice.run === null ? null : latestOf(after);
  const known = latestOf(before);
  const isNew = latest !== null && known !== null && (latest.session !== known.session || latest.cycle !== known.cycle);
  return { runs, changed, latest: isNew ? latest : null, before: resolveChoice(before, choice) };
}

/** What each run holds, as text that differs where a recording was added. */
function recordings(entries: readonly RunEntry[]): Map<string, string> {
  const result = new Map<string, string>();
  for (const entry of entries) {
    result.set(
      entry.run,
      `${result.get(entry.run) ?? ""}${entry.session} ${entry.rank} ${entry.cycles.join(",")} ${entry.created_unix_ns};`,
    );
  }
  return result;
}

/** Whether what is shown goes on to a new recording by itself: not where the user chose one, or iterations of one. */
export const follows = (choice: ProfileChoice, hasRange: boolean): boolean =>
  choice.session === null && choice.cycle === null && !hasRange;

/**
 * A choice that names the recording that is shown, where it is not to follow: iterations that were picked are those of this recording,
 * and a cycle that was chosen is that of this session.
 */
export function held<Choice extends ProfileChoice>(
  before: readonly RunEntry[],
  choice: Choice,
  hasRange: boolean,
): Choice {
  if (choice.run === null || follows(choice, hasRange)) return choice;
  const shown = resolveChoice(before, choice);
  return shown ? { ...choice, session: shown.session, cycle: shown.cycle } : choice;
}
