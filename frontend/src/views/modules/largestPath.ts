/** The module tree in, where most of the shown time is out: the largest module below the top, and the largest leaf in it. Pure. */
import type { ModuleRow } from "../../api/types";
import { timeOf, type Device, type Direction } from "./nodes";
import { keyOf, type ModuleTree } from "./tree";

export interface LargestPath {
  /** The largest of the modules right below the top; a module with a single one in it adds nothing and is passed over. */
  branch: ModuleRow;
  /** The largest module without others in it, inside the branch; null where the branch is a leaf. */
  leaf: ModuleRow | null;
  /** The largest leaf of all, where it is in another branch. */
  elsewhere: ModuleRow | null;
}

export function largestPath(tree: ModuleTree, top: string, device: Device, direction: Direction): LargestPath | null {
  const time = (row: ModuleRow): number => timeOf(row, device, direction) ?? 0;
  const below = (key: string): readonly ModuleRow[] => (tree.below.get(key) ?? []).filter((row) => time(row) > 0);
  const largest = (rows: readonly ModuleRow[]): ModuleRow | null =>
    rows.reduce<ModuleRow | null>((best, row) => (best === null || time(row) > time(best) ? row : best), null);
  const leaves = (row: ModuleRow): ModuleRow[] => {
    const waiting = [row];
    const found: ModuleRow[] = [];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const inside = below(keyOf(next));
      if (inside.length > 0) waiting.push(...[...inside].reverse());
      // What the server left out has its time in the modules around it.
      else if (next.children === 0) found.push(next);
    }
    return found;
  };
  let key = top;
  while (below(key).length === 1 && below(keyOf(below(key)[0]!)).length > 0) key = keyOf(below(key)[0]!);
  const branch = largest(below(key));
  if (branch === null) return null;
  const leaf = largest(leaves(branch));
  const all = largest(below(key).flatMap(leaves));
  return {
    branch,
    leaf: leaf === null || leaf === branch ? null : leaf,
    elsewhere: all !== null && leaf !== null && time(all) > time(leaf) ? all : null,
  };
}

/**
 * Share of a module (percent): of all GPU or CPU time as in the table where both passes are shown, else of the whole model's time in that pass.
 */
export function shareOf(tree: ModuleTree, row: ModuleRow, device: Device, direction: Direction): number | null {
  if (direction === "both") return device === "gpu" ? row.gpu_percent : row.cpu_percent;
  const root = tree.byKey.get(".");
  const [part, whole] = [timeOf(row, device, direction), root ? timeOf(root, device, direction) : null];
  return part === null || !whole ? null : (100 * part) / whole;
}
