import { describe, expect, it } from "vitest";
import type { RooflineOp } from "../../api/types";
import { numberFilter } from "../../components/table/filters";
import { roofline } from "../../testing/roofline";
import { alongLine, extent, memoryLine, pointSize, points, reasonsAbove, roofLine } from "./roofs";
import { filled } from "../../testing/filled";

const ROOF = filled("Roof", {
  precision: "fp16",
  tensor_cores: true,
  label: "FP16",
  flops_per_second: 1000e12,
  reached: true,
});
const [OP] = roofline.ops as [RooflineOp, ...RooflineOp[]];

describe("the roofline chart", () => {
  it("draws the ops whose FLOPs and bytes are known", () => {
    expect(points(roofline.ops).map(({ op }) => op.id)).toEqual(["conv1f"]);
    expect(points([{ ...OP, flops_per_byte: null }])).toEqual([]);
  });

  it("reaches around all points and bends in whole powers of ten", () => {
    const drawn = [{ op: OP, intensity: 30, rate: 2e13 }];
    expect(extent(drawn, [ROOF], 5e12)).toEqual({ x: [10, 1000], y: [1e13, 1e16] });
    expect(extent(drawn, [], null)).toEqual({ x: [10, 100], y: [1e13, 1e14] });
    expect(extent([], [], null)).toEqual({ x: [1, 10], y: [1, 10] });
  });

  it("begins each roof where the memory allows its rate, and draws the memory up to the highest", () => {
    const area = { x: [10, 1000] as [number, number], y: [1e13, 1e16] as [number, number] };
    expect(roofLine(ROOF, 5e12, area)).toEqual([
      [200, 1000e12],
      [1000, 1000e12],
    ]);
    expect(memoryLine([ROOF, { ...ROOF, flops_per_second: 500e12 }], 5e12, area)).toEqual([
      [10, 5e13],
      [200, 1000e12],
    ]);
  });

  it("begins the memory at the bottom edge where it leaves the chart there, and leaves it out where it is outside", () => {
    expect(memoryLine([ROOF], 5e12, { x: [1, 1000], y: [1e13, 1e16] })[0]).toEqual([2, 1e13]);
    expect(memoryLine([ROOF], 5e12, { x: [300, 1000], y: [1e13, 1e16] })).toEqual([]);
    expect(roofLine(ROOF, 5e12, { x: [300, 1000], y: [1e13, 1e16] })[0]).toEqual([300, 1000e12]);
  });

  it("names a line at a share of its length as it is drawn", () => {
    const [x, y] = alongLine(
      [
        [1, 1e12],
        [100, 1e14],
      ],
      0.5,
    )!;
    expect(x).toBeCloseTo(10);
    expect(y / 1e13).toBeCloseTo(1);
    expect(alongLine([], 0.5)).toBeNull();
  });

  it("counts the ops above their roofs by reason", () => {
    const above = (why_above_roof: string) => ({ op: { ...OP, why_above_roof }, intensity: 1, rate: 1 });
    expect(reasonsAbove([above(""), above("cached"), above("FFT"), above("FFT")])).toEqual([
      { why: "FFT", ops: 2 },
      { why: "cached", ops: 1 },
    ]);
  });

  it("gives a point an area by its time", () => {
    expect([pointSize(0, 100), pointSize(25, 100), pointSize(100, 100), pointSize(0, 0)]).toEqual([6, 17, 28, 6]);
  });
});

describe("a filter on FLOPs", () => {
  it("reads decimal units with and without their name", () => {
    for (const query of [">1.5T", "> 1.5 TFLOP", ">1.5tflop/s", ">1500G"]) {
      expect([1.4e12, 1.6e12].map((value) => numberFilter(query, "flops_per_second").accepts(value, ""))).toEqual([
        false,
        true,
      ]);
    }
    expect(numberFilter("unknown", "flops").accepts(null, "unknown")).toBe(true);
  });
});
