/** Runs in, groups of one model out: each with the scale of its bars. Runs on the CPU are groups of their own. Pure. */
import type { RunRow } from "../../api/types";

export interface RunGroup {
  title: string;
  /** The longest bar first; what has none last. */
  rows: RunRow[];
  /** What a bar of full width stands for; 0 where no bar has a length. */
  full: number;
}

/** Models in natural order, those that ran on the CPU after all others, unknown ones last. */
export function groupRuns(rows: readonly RunRow[], length: (row: RunRow) => number | null): RunGroup[] {
  const groups = new Map<string, RunRow[]>();
  for (const row of rows) {
    const title = titleOf(row);
    const known = groups.get(title);
    if (known) known.push(row);
    else groups.set(title, [row]);
  }
  return [...groups.entries()]
    .sort(
      ([one, [first]], [other, [second]]) =>
        order(first!, second!) || one.localeCompare(other, "en", { numeric: true }),
    )
    .map(([title, members]) => ({
      title,
      rows: [...members].sort((a, b) => (length(b) ?? -1) - (length(a) ?? -1)),
      full: Math.max(0, ...members.map((row) => length(row) ?? 0)),
    }));
}

const onCpu = (row: RunRow): boolean => row.gpus === 0;

/** Of an unknown model the directory that holds the run: recordings of one model are often below one. */
function titleOf(row: RunRow): string {
  const { run } = row.ref;
  const model = row.model || run.slice(0, Math.max(0, run.lastIndexOf("/"))) || "Model not recorded";
  return onCpu(row) ? `${model}, on the CPU` : model;
}

function order(one: RunRow, other: RunRow): number {
  return Number(onCpu(one)) - Number(onCpu(other)) || Number(one.model === "") - Number(other.model === "");
}
