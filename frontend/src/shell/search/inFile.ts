/** The search of an exported file, where no server matches names: those of the answers that the file holds. Pure. */
import type { AdvicePage, KernelsPage, ModulesPage, OpsPage, SearchHit, SearchPage } from "../../api/types";
import { fit, wordsOf } from "./match";

export interface FilePages {
  ops: OpsPage | null;
  kernels: KernelsPage | null;
  modules: ModulesPage | null;
  advice: AdvicePage | null;
}

const HITS_PER_KIND = 12;

/** As `views/search.py` answers it; null while the file is read. Reports are not searched. */
export function searchFile(text: string, { ops, kernels, modules, advice }: FilePages): SearchPage | null {
  const ref = ops?.ref;
  if (!ref) return null;
  const words = wordsOf(text);
  const found: Record<string, number> = {};
  const hits: SearchHit[] = [];
  const add = (kind: SearchHit["kind"], all: (Omit<SearchHit, "kind" | "fit"> & { more: string })[]): void => {
    const fitting = all.flatMap(({ more, ...hit }) => {
      const how = words.length === 0 ? null : fit(words, hit.label, more);
      return how === null ? [] : [{ ...hit, kind, fit: how }];
    });
    fitting.sort((x, y) => x.fit - y.fit || (y.value_ns ?? 0) - (x.value_ns ?? 0));
    found[kind] = fitting.length;
    hits.push(...fitting.slice(0, HITS_PER_KIND));
  };
  add("op", ops.rows.map((row) => ({ id: row.id, label: row.name, detail: row.direction || row.role, value_ns: row.gpu_ns ?? row.cpu_total_ns, more: `${row.direction} ${row.role} ${row.id}` })));
  add("module", (modules?.rows ?? []).filter((row) => row.path !== "").map((row) => ({ id: row.path, label: row.path, detail: row.ops === 1 ? "1 op" : `${row.ops} ops`, value_ns: row.gpu_ns ?? row.cpu_ns, more: "" })));
  add("kernel", (kernels?.rows ?? []).map((row) => ({ id: row.id, label: row.short_name, detail: row.family || row.kind, value_ns: row.total_ns, more: `${row.name} ${row.family}` })));
  add("rule", (advice?.rules ?? []).map((rule) => ({ id: rule.rule, label: rule.title, detail: rule.topic, value_ns: null, more: `${rule.rule} ${rule.topic}` })));
  return { ref, text, hits, found };
}
