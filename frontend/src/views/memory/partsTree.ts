/** What each category holds of each module in, the tree of modules out, with categories as its leaves. Pure. */
import type { MemoryPart } from "../../api/types";
import type { IcicleNode } from "../../components/icicle/layout";
import { colourOf } from "../../format/colours";
import { formatBytes, formatPercent } from "../../format/number";
import { WHOLE } from "../explore/workNodes";

interface Branch {
  path: string;
  label: string;
  bytes: number;
  /** What each category holds of it. */
  held: Map<MemoryPart["category"], number>;
  below: Map<string, Branch>;
  own: MemoryPart[];
}

/** The tree; `labels` are the categories'. */
export function partsTree(parts: readonly MemoryPart[], labels: ReadonlyMap<string, string>): IcicleNode {
  const root: Branch = { path: WHOLE, label: "all", bytes: 0, held: new Map(), below: new Map(), own: [] };
  for (const part of parts) {
    let branch = root;
    add(branch, part);
    const names = part.module === "" ? [] : part.module.split(".");
    names.forEach((name, depth) => {
      let next = branch.below.get(name);
      if (!next) {
        const path = names.slice(0, depth + 1).join(".");
        next = { path, label: name, bytes: 0, held: new Map(), below: new Map(), own: [] };
        branch.below.set(name, next);
      }
      add(next, part);
      branch = next;
    });
    branch.own.push(part);
  }
  return nodeOf(root, root.bytes, labels);
}

function add(branch: Branch, part: MemoryPart): void {
  branch.bytes += part.bytes;
  branch.held.set(part.category, (branch.held.get(part.category) ?? 0) + part.bytes);
}

function nodeOf(branch: Branch, all: number, labels: ReadonlyMap<string, string>): IcicleNode {
  const below = [
    ...[...branch.below.values()].map((one) => nodeOf(one, all, labels)),
    ...branch.own.map((part) => leaf(branch.path, part, all, labels)),
  ].sort((a, b) => b.ns - a.ns);
  const name = branch.path === WHOLE ? "All memory at the peak" : branch.path;
  return {
    key: branch.path,
    label: branch.label,
    name,
    ns: branch.bytes,
    own: 0,
    below,
    unsent: 0,
    // Of what holds most of it.
    colour: colourOf([...branch.held].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "before", 0, "memory"),
    hatched: false,
    tip: () => `${name}\n${words(branch.bytes, all)}`,
  };
}

function leaf(path: string, part: MemoryPart, all: number, labels: ReadonlyMap<string, string>): IcicleNode {
  const label = labels.get(part.category) ?? part.category;
  return {
    key: `${path}#${part.category}`,
    label,
    name: label,
    ns: part.bytes,
    own: 0,
    below: [],
    unsent: 0,
    colour: colourOf(part.category, 0, "memory"),
    hatched: false,
    tip: () => `${label}${part.module === "" ? ", of no module" : ` of ${part.module}`}\n${words(part.bytes, all)}`,
  };
}

const words = (bytes: number, all: number): string => `${formatBytes(bytes)}, ${formatPercent((100 * bytes) / all)}`;
