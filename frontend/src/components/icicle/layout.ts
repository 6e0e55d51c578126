/** A tree of times or sizes in, rectangles out: each node below the one that holds it, as wide as it is. Pure. */

export interface IcicleNode {
  /** Names it among all nodes. */
  key: string;
  /** What a rectangle says, and what the uppermost one says. */
  label: string;
  name: string;
  /** Its width: a time, or bytes. */
  ns: number;
  /** The part of it that lies in no node below. */
  own: number;
  below: readonly IcicleNode[];
  /** Nodes below that were not sent. */
  unsent: number;
  /** CSS; `hatched` where what the colour stands for is unknown. */
  colour: string;
  hatched: boolean;
  /** All that hovering says, line by line; sums divided by the number of iterations. */
  tip: (iterations: number) => string;
}

export interface Cell {
  key: string;
  node: IcicleNode;
  /** Several nodes too narrow to draw one by one, or left out by the server; `node` and `key` are those of the one that holds them. */
  merged: number;
  ns: number;
  level: number;
  /** Parts of the whole width, 0 to 1. */
  left: number;
  width: number;
}

/** Rectangles narrower than this (pixels) are drawn as one. */
const NARROWEST = 2;

/**
 * The node `top` and all in it. Where the parts of a node overlap on the GPU and so are longer than it together, they are
 * made narrower alike; what is left of its width is its own time.
 */
export function layOut(top: IcicleNode | null, pixels: number): Cell[] {
  if (top === null || top.ns <= 0) return [];
  const cells: Cell[] = [];
  const narrow = NARROWEST / Math.max(1, pixels);
  let level: Cell[] = [{ key: top.key, node: top, merged: 0, ns: top.ns, level: 0, left: 0, width: 1 }];
  while (level.length > 0) {
    cells.push(...level);
    level = level.flatMap((cell) => (cell.merged > 0 ? [] : partsOf(cell, narrow)));
  }
  return cells;
}

function partsOf(cell: Cell, narrow: number): Cell[] {
  const parts = cell.node.below.filter(({ ns }) => ns > 0);
  const sum = parts.reduce((total, { ns }) => total + ns, 0);
  const scale = cell.width / Math.max(cell.ns, sum);
  const cells: Cell[] = [];
  const level = cell.level + 1;
  let left = cell.left;
  for (const node of parts) {
    const width = node.ns * scale;
    const before = cells[cells.length - 1];
    if (width >= narrow) cells.push({ key: node.key, node, merged: 0, ns: node.ns, level, left, width });
    else if (before && before.merged > 0 && before.width < 4 * narrow) {
      before.merged += 1;
      before.ns += node.ns;
      before.width += width;
    } else cells.push({ key: cell.key, node: cell.node, merged: 1, ns: node.ns, level, left, width });
    left += width;
  }
  const rest = cell.ns - sum - cell.node.own;
  if (cell.node.unsent > 0 && rest > 0)
    cells.push({
      key: cell.key,
      node: cell.node,
      merged: cell.node.unsent,
      ns: rest,
      level,
      left,
      width: rest * scale,
    });
  return cells;
}
