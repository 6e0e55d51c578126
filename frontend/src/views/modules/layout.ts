/** A module tree and a measure in, rectangles out: each module below the one that holds it, as wide as its time. Pure. */
import type { ModuleRow } from "../../api/types";
import { keyOf, type ModuleTree } from "./tree";

export type Device = "gpu" | "cpu";
export type Direction = "both" | "forward" | "backward";

/** The time that makes a module's width; null where it does not apply. */
export function timeOf(row: ModuleRow, device: Device, direction: Direction): number | null {
  const [both, forward, backward] =
    device === "gpu"
      ? [row.gpu_ns, row.gpu_forward_ns, row.gpu_backward_ns]
      : [row.cpu_ns, row.cpu_forward_ns, row.cpu_backward_ns];
  return { both, forward, backward }[direction];
}

/** The part of it that lies in no module inside; 0 where only the whole is known. */
export function ownTimeOf(row: ModuleRow, device: Device, direction: Direction): number {
  if (direction !== "both") return 0;
  return (device === "gpu" ? row.gpu_own_ns : row.cpu_own_ns) ?? 0;
}

export interface Cell {
  key: string;
  row: ModuleRow;
  /** Several modules too narrow to draw one by one, or left out by the server; `row` and `key` are those of the module that holds them. */
  merged: number;
  ns: number;
  level: number;
  /** Parts of the whole width, 0 to 1. */
  left: number;
  width: number;
}

/** Rectangles narrower than this (pixels) are drawn as one. */
const NARROWEST = 2;

type Time = (row: ModuleRow) => number | null;

/**
 * The module `top` and all in it. Where the parts of a module overlap on the GPU and so are longer than it together, they are
 * made narrower alike; what is left of its width is its own time.
 */
export function layOut(
  tree: ModuleTree,
  top: string,
  time: Time,
  pixels: number,
  own: (row: ModuleRow) => number = () => 0,
): Cell[] {
  const first = tree.byKey.get(top);
  const whole = first ? (time(first) ?? 0) : 0;
  if (!first || whole <= 0) return [];
  const cells: Cell[] = [];
  const narrow = NARROWEST / Math.max(1, pixels);
  let level: Cell[] = [{ key: top, row: first, merged: 0, ns: whole, level: 0, left: 0, width: 1 }];
  while (level.length > 0) {
    cells.push(...level);
    level = level.flatMap((cell) => (cell.merged > 0 ? [] : partsOf(tree, cell, time, own, narrow)));
  }
  return cells;
}

function partsOf(tree: ModuleTree, cell: Cell, time: Time, own: (row: ModuleRow) => number, narrow: number): Cell[] {
  const sent = tree.below.get(cell.key) ?? [];
  const parts = sent.map((row) => ({ row, ns: time(row) ?? 0 })).filter(({ ns }) => ns > 0);
  const sum = parts.reduce((total, { ns }) => total + ns, 0);
  const scale = cell.width / Math.max(cell.ns, sum);
  const cells: Cell[] = [];
  let left = cell.left;
  for (const { row, ns } of parts) {
    const width = ns * scale;
    const before = cells[cells.length - 1];
    if (width >= narrow) cells.push({ key: keyOf(row), row, merged: 0, ns, level: cell.level + 1, left, width });
    else if (before && before.merged > 0 && before.width < 4 * narrow) {
      before.merged += 1;
      before.ns += ns;
      before.width += width;
    } else cells.push({ key: cell.key, row: cell.row, merged: 1, ns, level: cell.level + 1, left, width });
    left += width;
  }
  const rest = cell.ns - sum - own(cell.row);
  if (cell.row.children > sent.length && rest > 0) {
    const merged = cell.row.children - sent.length;
    cells.push({ key: cell.key, row: cell.row, merged, ns: rest, level: cell.level + 1, left, width: rest * scale });
  }
  return cells;
}
