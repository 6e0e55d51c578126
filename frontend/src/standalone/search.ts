/** The pages that a file holds in; what has some words in its name out, as the server's search answers (`views/search.py`). Pure. */
import type {
  AdvicePage,
  HitKind,
  KernelsPage,
  ModulesPage,
  OpsPage,
  ReportPage,
  SearchHit,
  SearchPage,
} from "../api/types";
import { directionWords } from "../format/passes";
import { fit, wordsOf } from "../format/wordMatch";
import { stepsOf } from "../state/shownRange";

export interface Searched {
  ops: OpsPage;
  modules: ModulesPage;
  kernels: KernelsPage;
  advice: AdvicePage;
  report: ReportPage;
}

interface Candidate extends Omit<SearchHit, "kind" | "fit"> {
  /** What is searched in addition to the label. */
  more: string;
}

const HITS_PER_KIND = 12;

const KINDS: Record<HitKind, (pages: Searched) => Candidate[]> = {
  op: ({ ops }) =>
    ops.rows.map((row) => ({
      id: row.id,
      label: row.name,
      detail: row.role,
      value_ns: ops.has_gpu ? row.gpu_ns : row.cpu_total_ns,
      more: `${directionWords(row.direction)} ${row.role} ${row.id}`,
    })),
  module: ({ modules }) =>
    modules.rows
      .filter((row) => row.path !== "")
      .map((row) => ({
        id: row.path,
        label: row.path,
        detail: `${row.ops} op${row.ops === 1 ? "" : "s"}`,
        value_ns: modules.has_gpu ? row.gpu_ns : row.cpu_ns,
        more: "",
      })),
  kernel: ({ kernels }) =>
    kernels.rows.map((row) => ({
      id: row.id,
      label: row.short_name,
      detail: row.family || row.kind,
      value_ns: row.total_ns,
      more: `${row.name} ${row.family}`,
    })),
  rule: ({ advice }) =>
    advice.rules.map((rule) => ({
      id: rule.rule,
      label: rule.title,
      detail: rule.topic,
      value_ns: null,
      more: `${rule.rule} ${rule.topic}`,
    })),
  report: ({ report }) =>
    report.reports.map((one) => ({
      id: one.name,
      label: one.title,
      detail: one.question,
      value_ns: null,
      more: `${one.question} ${one.name}`,
    })),
};

export function searchIn(pages: Searched, text: string): SearchPage {
  const words = wordsOf(text);
  const page: SearchPage = { ref: pages.ops.ref, text, iterations: stepsOf(pages.ops.range), hits: [], found: {} };
  if (words.length === 0) return page;
  for (const [kind, candidates] of Object.entries(KINDS) as [HitKind, (typeof KINDS)[HitKind]][]) {
    const hits: SearchHit[] = [];
    for (const { more, ...one } of candidates(pages)) {
      const how = fit(words, one.label, more);
      if (how !== null) hits.push({ kind, ...one, fit: how });
    }
    hits.sort(
      (x, y) =>
        x.fit - y.fit ||
        (y.value_ns ?? 0) - (x.value_ns ?? 0) ||
        (x.value_ns === null ? x.label.localeCompare(y.label) : 0),
    );
    page.found[kind] = hits.length;
    page.hits.push(...hits.slice(0, HITS_PER_KIND));
  }
  return page;
}
