/** The rows of the Modules page as a tree: what lies below what, and in which order a table shows it. Pure. */
import type { ModuleRow } from "../../api/types";

/** Names a row in the address and between components: a path, "." for the whole model, ":role" for a row outside of it. */
export function keyOf(row: ModuleRow): string {
  return row.role !== null ? `:${row.role}` : row.path || ".";
}

/** What is right above; null for the whole model and for what lies outside. */
export function keyAbove(key: string): string | null {
  if (key === "." || key.startsWith(":")) return null;
  const dot = key.lastIndexOf(".");
  return dot < 0 ? "." : key.slice(0, dot);
}

/** All that is above, the nearest first. */
export function keysAbove(key: string): string[] {
  const result: string[] = [];
  for (let above = keyAbove(key); above !== null; above = keyAbove(above)) result.push(above);
  return result;
}

export function labelOf(row: ModuleRow, model: string): string {
  if (row.role !== null) return `outside modules: ${row.role}`;
  // A number alone names no module: what it counts stands before it.
  return /(?:[^.]+\.)?\d+$|[^.]+$/.exec(row.path)?.[0] ?? model;
}

export interface ModuleTree {
  byKey: ReadonlyMap<string, ModuleRow>;
  /** Modules right below, in the order in which they were first called. */
  below: ReadonlyMap<string, readonly ModuleRow[]>;
}

export function buildTree(rows: readonly ModuleRow[]): ModuleTree {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const below = new Map<string, ModuleRow[]>();
  for (const row of [...rows].sort((a, b) => a.order - b.order)) {
    const above = keyAbove(keyOf(row));
    if (above !== null) below.set(above, [...(below.get(above) ?? []), row]);
  }
  return { byKey, below };
}

/**
 * Sorted rows in the order of a tree: each followed by what is in it, siblings as sorted. Filtered rows keep those above them;
 * unfiltered, only what lies in `open` modules is shown.
 */
export function arrange(
  tree: ModuleTree,
  open: ReadonlySet<string>,
  sorted: readonly ModuleRow[],
  filtered: boolean,
): ModuleRow[] {
  const rank = new Map(sorted.map((row, index) => [keyOf(row), index]));
  for (const row of filtered ? sorted : []) {
    const key = keyOf(row);
    // A module that does not fit itself stands where the first that does would stand.
    for (const above of keysAbove(key)) if (!rank.has(above)) rank.set(above, rank.get(key)!);
  }
  const result: ModuleRow[] = [];
  const waiting = [...rank.keys()].filter((key) => keyAbove(key) === null).sort((a, b) => rank.get(b)! - rank.get(a)!);
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    result.push(tree.byKey.get(key)!);
    if (!filtered && !open.has(key)) continue;
    const below = (tree.below.get(key) ?? []).map(keyOf).filter((child) => rank.has(child));
    waiting.push(...below.sort((a, b) => rank.get(b)! - rank.get(a)!));
  }
  return result;
}

const FIRST_ROWS = 30;

/** What is open at first: level by level, as long as that shows at most some thirty rows, and the way to `selected`. */
export function openAtFirst(tree: ModuleTree, selected: string | null): Set<string> {
  const open = new Set(selected === null ? [] : keysAbove(selected));
  let level = ["."];
  let shown = 1;
  while (level.length > 0) {
    const next = level.flatMap((key) => (tree.below.get(key) ?? []).map(keyOf));
    shown += next.length;
    if (shown > FIRST_ROWS && open.has(".")) break;
    for (const key of level) open.add(key);
    level = next;
  }
  return open;
}

/** Whether an op with this module and role is one of those that a key stands for. */
export function holdsOp(key: string, op: { module: string; role: string }): boolean {
  if (key.startsWith(":")) return op.module === "" && op.role === key.slice(1);
  return op.module === key || op.module.startsWith(`${key}.`);
}
