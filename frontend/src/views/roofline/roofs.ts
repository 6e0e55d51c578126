/** Ops and roofs in, what the chart draws out: the extent of both axes, each roof's line, the size of a point. */
import type { Roof, RooflineOp } from "../../api/types";

export interface Point {
  op: RooflineOp;
  intensity: number;
  rate: number;
}

export interface Extent {
  x: [number, number];
  y: [number, number];
}

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
  const x = around([...drawn.map((point) => point.intensity), ...bends]);
  const y = around([
    ...drawn.map((point) => point.rate),
    ...(bytesPerSecond === null ? [] : roofs.map((roof) => roof.flops_per_second)),
  ]);
  return { x, y };
}

/** From the bottom or the left edge up along the bandwidth, then along the peak to the right edge. */
export function roofLine(roof: Roof, bytesPerSecond: number, { x, y }: Extent): [number, number][] {
  const start = Math.max(x[0], y[0] / bytesPerSecond);
  const bend = roof.flops_per_second / bytesPerSecond;
  const rising: [number, number][] = start < bend ? [[start, start * bytesPerSecond]] : [];
  return [...rising, [Math.max(bend, start), roof.flops_per_second], [x[1], roof.flops_per_second]];
}

/** Diameter in pixels: the area follows the share of the time. */
export function pointSize(ns: number, most: number): number {
  return 6 + 22 * Math.sqrt(most > 0 ? ns / most : 0);
}

function around(values: readonly number[]): [number, number] {
  if (values.length === 0) return [1, 10];
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.05));
  return [low, high > low ? high : low * 10];
}
