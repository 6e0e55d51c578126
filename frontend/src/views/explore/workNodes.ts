/** Ops, op types and kernels as the icicle draws them: trees of the time of their parts. Pure. */
import type { KernelRow, OpRow, Verdict, WorkTree } from "../../api/types";
import { NOTHING_ELIGIBLE, onTensorCores, UNKNOWN } from "../../components/icicle/colours";
import type { IcicleNode } from "../../components/icicle/layout";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { exactUnit } from "../../format/unit";

/** A part of the time and where it stands: what it is in, from the outside, and itself. */
export interface Part {
  path: readonly { key: string; label: string }[];
  ns: number;
  /** Of kernels whether they run on Tensor Cores; "none" could not, and null is time without a GPU. */
  tensorCores: Verdict | "none" | null;
}

/** A node while parts are added to it. */
interface Growing {
  key: string;
  label: string;
  ns: number;
  own: number;
  on: number;
  eligible: number;
  unknown: number;
  hasGpu: boolean;
  below: Map<string, Growing>;
}

const growing = (key: string, label: string): Growing => ({
  key,
  label,
  ns: 0,
  own: 0,
  on: 0,
  eligible: 0,
  unknown: 0,
  hasGpu: false,
  below: new Map(),
});

/** The key of the whole. */
export const WHOLE = ".";

/** The parts as one tree below `title`, the largest first. */
export function treeOf(title: string, parts: readonly Part[]): IcicleNode {
  const root = growing(WHOLE, title);
  for (const { path, ns, tensorCores } of parts) {
    const along = [root];
    for (const { key, label } of path) {
      const { below } = along[along.length - 1]!;
      let node = below.get(key);
      if (!node) below.set(key, (node = growing(key, label)));
      along.push(node);
    }
    for (const node of along) {
      node.ns += ns;
      node.hasGpu ||= tensorCores !== null;
      if (tensorCores === "yes") node.on += ns;
      if (tensorCores === "unknown") node.unknown += ns;
      if (tensorCores !== null && tensorCores !== "none") node.eligible += ns;
    }
    along[along.length - 1]!.own += ns;
  }
  return finished(root, root.ns);
}

function finished(node: Growing, whole: number): IcicleNode {
  const below = [...node.below.values()].sort((a, b) => b.ns - a.ns).map((child) => finished(child, whole));
  // As in the engine: unknown where that could change the share by more than 5 points.
  const hatched = node.eligible > 0 && node.unknown > 0.05 * node.eligible;
  return {
    key: node.key,
    label: node.label,
    name: node.label,
    ns: node.ns,
    own: below.length > 0 ? node.own : 0,
    below,
    unsent: 0,
    colour: colourOf(node, hatched),
    hatched,
    tip: (iterations) => tipOf(node, whole, hatched, iterations),
  };
}

function colourOf({ hasGpu, eligible, on }: Growing, hatched: boolean): string {
  if (!hasGpu) return "var(--accent)";
  if (eligible === 0) return NOTHING_ELIGIBLE;
  return hatched ? UNKNOWN : onTensorCores((100 * on) / eligible);
}

function tipOf({ label, ns, hasGpu, eligible, on }: Growing, whole: number, hatched: boolean, iterations: number) {
  const lines = [
    label,
    `${hasGpu ? "GPU" : "CPU"} time ${exactUnit(ns / iterations, "ns")}, ${formatPercent((100 * ns) / whole)} of all`,
  ];
  if (hasGpu)
    lines.push(
      eligible === 0
        ? "Nothing in it could use Tensor Cores"
        : `On Tensor Cores ${hatched ? "unknown" : formatPercent((100 * on) / eligible)} of ${formatNs(eligible / iterations)}`,
    );
  return lines.join("\n");
}

const withPass = (label: string, direction: string): string =>
  direction === "backward" ? `${label} (backward)` : label;

/** Ops below the modules that call them, those of no module by the part of the step. */
export function opParts(rows: readonly OpRow[], hasGpu: boolean): Part[] {
  return rows.map((row) => {
    const names = row.module === "" ? [] : row.module.split(".");
    const modules = names.map((label, level) => ({ key: `m:${names.slice(0, level + 1).join(".")}`, label }));
    const around = modules.length > 0 ? modules : [{ key: `r:${row.role}`, label: `outside modules: ${row.role}` }];
    return {
      path: [...around, { key: row.id, label: withPass(row.op_type, row.direction) }],
      ns: (hasGpu ? row.gpu_ns : row.cpu_total_ns) ?? 0,
      tensorCores: hasGpu ? (row.tc_eligible === "no" ? "none" : row.using_tc) : null,
    };
  });
}

/** Op types, in them their ops, in these their kernels; `types` alone. */
export function typeParts(tree: WorkTree, types: ReadonlySet<string>): Part[] {
  return tree.ops
    .filter((op) => types.has(op.op_type))
    .flatMap((op): Part[] => {
      const path = [
        { key: op.op_type, label: op.op_type },
        { key: `o:${op.id}`, label: withPass(op.module || op.op_type, op.direction) },
      ];
      const rest = op.time_ns - op.kernel_ns.reduce((sum, ns) => sum + ns, 0);
      const kernels = op.kernels.map((index, place): Part => {
        const kernel = tree.kernels[index]!;
        return {
          path: [...path, { key: `k:${op.id}:${kernel.id}`, label: kernel.short_name }],
          ns: op.kernel_ns[place]!,
          tensorCores: op.tc_eligible === "no" ? "none" : kernel.tensor_core,
        };
      });
      return rest > 0 ? [...kernels, { path, ns: rest, tensorCores: tree.has_gpu ? "none" : null }] : kernels;
    });
}

/** Kernels by their family. */
export const kernelParts = (rows: readonly KernelRow[]): Part[] =>
  rows.map((row) => ({
    path: [
      { key: `f:${row.family}`, label: row.family || "unknown family" },
      { key: row.id, label: row.short_name },
    ],
    ns: row.total_ns,
    tensorCores: row.tensor_core,
  }));

/** The way from the whole to a node, both included; only the whole where there is no such node. */
export function wayTo(root: IcicleNode, key: string): IcicleNode[] {
  const way = (node: IcicleNode): IcicleNode[] | null => {
    if (node.key === key) return [node];
    for (const child of node.below) {
      const found = way(child);
      if (found) return [node, ...found];
    }
    return null;
  };
  return way(root) ?? [root];
}
