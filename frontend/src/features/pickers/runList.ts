/** The runs of a logdir and what is searched for in; the lines of the run picker out: groups, and runs in them. Pure. */
import type { RunEntry } from "../../api/types";
import { fit, wordsOf } from "../../format/wordMatch";

/** One run, of its newest session. */
export interface RunItem {
  run: string;
  group: string;
  /** Its name without the group's. */
  name: string;
  precision: string;
  /** The model, and the GPU where the runs differ in it. */
  facts: string;
  /** The mean recorded step. */
  stepNs: number | null;
  newest: boolean;
  ranks: number;
}

export type RunLine = { kind: "group"; label: string; runs: number } | { kind: "run"; item: RunItem };

/** "run2" before "run10". */
const NATURAL = new Intl.Collator("en", { numeric: true });

export function runItems(entries: readonly RunEntry[]): RunItem[] {
  const byRun = new Map<string, RunEntry[]>();
  for (const entry of entries) {
    const known = byRun.get(entry.run);
    if (known) known.push(entry);
    else byRun.set(entry.run, [entry]);
  }
  const groupOf = grouping([...byRun.values()].map((own) => own[0]!));
  const devices = new Set(entries.map((entry) => entry.device));
  const last = newestRun(entries);
  return [...byRun]
    .sort(([a], [b]) => NATURAL.compare(a, b))
    .map(([run, own]) => {
      const { session } = own.reduce((newest, other) =>
        (other.created_unix_ns ?? 0) > (newest.created_unix_ns ?? 0) ? other : newest,
      );
      const entry = own
        .filter((other) => other.session === session)
        .reduce((lowest, other) => (other.rank < lowest.rank ? other : lowest));
      const group = groupOf(entry);
      return {
        run,
        group,
        name: group !== "" && run.startsWith(`${group}/`) ? run.slice(group.length + 1) : run,
        precision: entry.precision ?? "",
        facts: [entry.model === group ? null : entry.model, devices.size > 1 ? entry.device : null]
          .filter(Boolean)
          .join(" · "),
        stepNs: entry.recorded_iteration_ns,
        newest: run === last,
        ranks: new Set(own.filter((other) => other.session === entry.session).map((other) => other.rank)).size,
      };
    });
}

/** The run that was recorded last; null where no run says when. */
export function newestRun(entries: readonly RunEntry[]): string | null {
  let newest: RunEntry | null = null;
  for (const entry of entries) if ((entry.created_unix_ns ?? 0) > (newest?.created_unix_ns ?? 0)) newest = entry;
  return newest?.run ?? null;
}

/** By the first directory where that puts runs together, else by model; one group alone is none. */
function grouping(runs: readonly RunEntry[]): (entry: RunEntry) => string {
  const first = (entry: RunEntry): string =>
    entry.run.includes("/") ? entry.run.slice(0, entry.run.indexOf("/")) : "";
  const model = (entry: RunEntry): string => entry.model ?? "";
  for (const of of [first, model]) {
    const groups = new Set(runs.map(of)).size;
    if (groups > 1 && groups <= runs.length / 2) return of;
  }
  return () => "";
}

/** Groups in the order of their names, or, for what is searched, of their best run. */
export function runLines(items: readonly RunItem[], text: string): RunLine[] {
  const words = wordsOf(text);
  const found = items.flatMap((item) => {
    const how = fit(words, item.run, `${item.facts} ${item.group} ${item.precision} ${item.newest ? "newest" : ""}`);
    return how === null ? [] : [{ item, how }];
  });
  if (words.length > 0) found.sort((x, y) => x.how - y.how);
  const groups = new Map<string, RunItem[]>();
  for (const { item } of found) {
    const group = groups.get(item.group);
    if (group) group.push(item);
    else groups.set(item.group, [item]);
  }
  const grouped = groups.size > 1 || !groups.has("");
  return [...groups].flatMap(([label, runs]) => [
    ...(grouped ? [{ kind: "group" as const, label, runs: runs.length }] : []),
    ...runs.map((item) => ({ kind: "run" as const, item })),
  ]);
}
