/** What the search found, of the page's own knowledge and of the server's: groups of hits, the best group first. Pure. */
import type { HitKind, RunEntry, SearchPage } from "../../api/types";
import { formatNs } from "../../format/duration";
import { DEFINITIONS } from "../../format/definitions";
import { METRICS } from "../../format/metrics";
import { PAGES } from "../../state/pages";
import { describeEntry } from "../../state/profileChoice";
import { ROUTES } from "../routes";
import { fit, wordsOf } from "../../format/wordMatch";

export type Kind = HitKind | "page" | "metric" | "run";

export interface Hit {
  kind: Kind;
  id: string;
  label: string;
  detail: string;
  /** What stands at the right end: a time, a key. */
  mark: string;
  fit: number;
}

export interface HitGroup {
  kind: Kind;
  label: string;
  hits: Hit[];
  /** How many there are, shown or not. */
  found: number;
}

const LABELS: Record<Kind, string> = {
  page: "Pages",
  op: "Ops",
  module: "Modules",
  kernel: "Kernels",
  rule: "Rules of the advice",
  metric: "Measures",
  report: "Reports",
  run: "Runs",
};
const ORDER = Object.keys(LABELS) as Kind[];
const MOST_SHOWN = 6;

/** `answer` may be that to the words before these: the next one follows at once. `perStep` divides times by its iterations. */
export function search(
  text: string,
  runs: readonly RunEntry[],
  answer: SearchPage | null,
  perStep = false,
): HitGroup[] {
  const words = wordsOf(text);
  if (words.length === 0) return [group("page", pages(words))];
  const found = answer?.found ?? {};
  const iterations = (perStep && answer?.iterations) || 1;
  const groups = [group("page", pages(words)), group("metric", metrics(words)), group("run", runHits(words, runs))];
  for (const kind of ["op", "module", "kernel", "rule", "report"] as const) {
    const hits = (answer?.hits ?? []).filter((hit) => hit.kind === kind);
    groups.push(
      group(
        kind,
        hits.map((hit) => ({ ...hit, mark: hit.value_ns === null ? "" : formatNs(hit.value_ns / iterations) })),
        found[kind],
      ),
    );
  }
  return groups
    .filter(({ hits }) => hits.length > 0)
    .sort((x, y) => x.hits[0]!.fit - y.hits[0]!.fit || ORDER.indexOf(x.kind) - ORDER.indexOf(y.kind));
}

function group(kind: Kind, hits: Hit[], found = hits.length): HitGroup {
  return {
    kind,
    label: LABELS[kind],
    hits: [...hits].sort((x, y) => x.fit - y.fit).slice(0, kind === "page" ? hits.length : MOST_SHOWN),
    found,
  };
}

function pages(words: readonly string[]): Hit[] {
  return PAGES.flatMap((page) =>
    hit(words, { kind: "page", id: page, label: ROUTES[page].title, detail: ROUTES[page].question, mark: "" }),
  );
}

function metrics(words: readonly string[]): Hit[] {
  return METRICS.flatMap(({ key, label, page }) =>
    hit(words, { kind: "metric", id: key, label, detail: DEFINITIONS[key], mark: ROUTES[page].title }, false),
  );
}

function runHits(words: readonly string[], entries: readonly RunEntry[]): Hit[] {
  const seen = new Set<string>();
  return entries.flatMap((entry) => {
    if (seen.has(entry.run)) return [];
    seen.add(entry.run);
    const mark = entry.recorded_iteration_ns === null ? "" : `${formatNs(entry.recorded_iteration_ns)} recorded`;
    return hit(words, { kind: "run", id: entry.run, label: entry.run, detail: describeEntry(entry, entries), mark });
  });
}

function hit(words: readonly string[], found: Omit<Hit, "fit">, inDetail = true): Hit[] {
  const value = fit(words, found.label, inDetail ? found.detail : "");
  return value === null ? [] : [{ ...found, fit: value }];
}
