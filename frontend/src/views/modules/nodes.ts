/** The module tree as the icicle draws it: the time of each module, its colour, and what hovering says. Pure. */
import type { ModuleRow } from "../../api/types";
import { NOTHING_ELIGIBLE, onTensorCores, UNKNOWN } from "../../components/icicle/colours";
import type { IcicleNode } from "../../components/icicle/layout";
import { perStep, unitPerStep } from "../../components/sums";
import { formatNs } from "../../format/duration";
import { exactUnit, formatUnit } from "../../format/unit";
import { keyOf, labelOf, type ModuleTree } from "./tree";

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

interface Drawn {
  model: string;
  hasGpu: boolean;
  device: Device;
  direction: Direction;
  /** The modules to draw; null for all. */
  kept: ReadonlySet<string> | null;
}

/** The module `key` and all in it; null where it is not in the tree. */
export function moduleNode(tree: ModuleTree, key: string, drawn: Drawn): IcicleNode | null {
  const row = tree.byKey.get(key);
  if (!row) return null;
  const sent = tree.below.get(key) ?? [];
  return {
    key,
    label: labelOf(row, drawn.model),
    name: row.path || drawn.model,
    ns: timeOf(row, drawn.device, drawn.direction) ?? 0,
    own: ownTimeOf(row, drawn.device, drawn.direction),
    below: sent
      .filter((child) => drawn.kept?.has(keyOf(child)) ?? true)
      .map((child) => moduleNode(tree, keyOf(child), drawn)!),
    unsent: Math.max(0, row.children - sent.length),
    colour: colour(row),
    hatched: isUnknown(row),
    tip: (iterations) => describe(row, drawn.model, drawn.hasGpu, iterations),
  };
}

/** The scale from "no eligible time on Tensor Cores" to "all of it"; grey where there is none or it is unknown. */
export function colour(row: ModuleRow): string {
  if (row.eligible_ns === null) return "var(--accent)";
  if (row.eligible_ns === 0) return NOTHING_ELIGIBLE;
  if (isUnknown(row)) return UNKNOWN;
  return onTensorCores(row.utilization_percent!);
}

const isUnknown = (row: ModuleRow): boolean => (row.eligible_ns ?? 0) > 0 && row.utilization_percent === null;

/** All that hovering says, line by line; sums divided by `iterations`. */
export function describe(row: ModuleRow, model: string, hasGpu: boolean, iterations = 1): string {
  const time = (ns: number | null): string => formatNs(perStep(ns, iterations));
  const count = (calls: number | null): string =>
    formatUnit(perStep(calls, iterations), unitPerStep("count", iterations));
  const halves = (both: number | null, forward: number | null, backward: number | null): string =>
    `${exactUnit(perStep(both, iterations), "ns")} (forward ${time(forward)}, backward ${time(backward)})`;
  const lines = [(row.path || model) + (row.type && row.path ? ` (${row.type})` : "")];
  if (hasGpu)
    lines.push(
      `GPU time ${halves(row.gpu_ns, row.gpu_forward_ns, row.gpu_backward_ns)}, ${formatUnit(row.gpu_percent, "percent")} of all`,
    );
  lines.push(`CPU time ${halves(row.cpu_ns, row.cpu_forward_ns, row.cpu_backward_ns)}`);
  lines.push(`Own time ${time(hasGpu ? row.gpu_own_ns : row.cpu_own_ns)}`);
  lines.push(`Forward calls ${count(row.calls)}, op calls ${count(row.op_calls)}`);
  if (hasGpu)
    lines.push(
      row.eligible_ns === 0
        ? "Nothing in it could use Tensor Cores"
        : `On Tensor Cores ${formatUnit(row.utilization_percent, "percent")} of ${time(row.eligible_ns)} eligible`,
    );
  return lines.join("\n");
}
