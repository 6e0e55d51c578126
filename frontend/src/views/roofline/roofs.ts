/** Ops and roofs in, what the chart draws out: the extent of both axes, each roof's line, the size of a point. */
import type { Roof, RooflineOp } from "../../api/types";
import { decadesAround, type Span } from "../../components/chart/axis";

export interface Point {
  op: RooflineOp;
  intensity: number;
  rate: number;
}

export interface Extent {
  x: Span;
  y: Span;
}

type Line = [number, number][];

/** The ops that have a place in the chart. */
export function points(ops: readonly RooflineOp[]): Point[] {
  return ops.flatMap((op) =>
    op.flops_per_byte !== null && op.flops_per_second !== null && op.flops_per_byte > 0 && op.flops_per_second > 0
      ? [{ op, intensity: op.flops_per_byte, rate: op.flops_per_second }]
      : [],
  );
}

/** Whole powers of ten around all points and the bends of all roofs. */
export function extent(drawn: readonly Point[], roofs: readonly Roof[], bytesPerSecond: number | null): Extent {
  const bends = bytesPerSecond === null ? [] : roofs.map((roof) => roof.flops_per_second / bytesPerSecond);
  const x = decadesAround([...drawn.map((point) => point.intensity), ...bends]);
  const y = decadesAround([
    ...drawn.map((point) => point.rate),
    ...(bytesPerSecond === null ? [] : roofs.map((roof) => roof.flops_per_second)),
  ]);
  return { x, y };
}

/** The peak rate, from where the memory allows it to the right edge. */
export function roofLine(roof: Roof, bytesPerSecond: number, { x }: Extent): Line {
  return [
    [Math.max(roof.flops_per_second / bytesPerSecond, x[0]), roof.flops_per_second],
    [x[1], roof.flops_per_second],
  ];
}

/** The memory's bandwidth, from the bottom or the left edge up to the highest roof; nothing where that is left of the chart. */
export function memoryLine(roofs: readonly Roof[], bytesPerSecond: number, { x, y }: Extent): Line {
  const start = Math.max(x[0], y[0] / bytesPerSecond);
  const bend = Math.max(0, ...roofs.map((roof) => roof.flops_per_second)) / bytesPerSecond;
  if (start >= bend) return [];
  return [
    [start, start * bytesPerSecond],
    [bend, bend * bytesPerSecond],
  ];
}

/** The point of a line on logarithmic axes that lies at a share (0 to 1) of its length. */
export function alongLine(line: Line, share: number): [number, number] | null {
  const [from, to] = line;
  if (!from || !to) return null;
  const between = (low: number, high: number): number => low * (high / low) ** share;
  return [between(from[0], to[0]), between(from[1], to[1])];
}

/** Diameter in pixels: the area follows the share of the time. */
export function pointSize(ns: number, most: number): number {
  return 6 + 22 * Math.sqrt(most > 0 ? ns / most : 0);
}

/** Why ops are above their roofs, each reason with the number of its ops, the most frequent first. */
export function reasonsAbove(drawn: readonly Point[]): { why: string; ops: number }[] {
  const found = new Map<string, number>();
  for (const { op } of drawn) {
    if (op.why_above_roof) found.set(op.why_above_roof, (found.get(op.why_above_roof) ?? 0) + 1);
  }
  return [...found].map(([why, ops]) => ({ why, ops })).sort((a, b) => b.ops - a.ops);
}
