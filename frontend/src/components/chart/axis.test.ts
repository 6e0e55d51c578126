import { describe, expect, it } from "vitest";
import { along, apart, decades, decadesAround, multiples, places, roundStep, scaleOf, upwards } from "./axis";

const labelled = (axis: ReturnType<typeof places>, pixels: number) =>
  axis.ticks(axis.span, pixels).flatMap(({ value, label }) => (label ? [value] : []));

describe("an axis", () => {
  it("maps values to pixels and back, from the left or from the bottom, linear or logarithmic", () => {
    const linear = scaleOf(places([]), [0, 10], 200);
    expect([linear.at(5), linear.valueAt(50)]).toEqual([100, 2.5]);
    const upright = scaleOf(places([]), [0, 10], 200, true);
    expect([upright.at(0), upright.at(10), upright.valueAt(50)]).toEqual([200, 0, 7.5]);
    const logarithmic = scaleOf(decades([1, 100], String), [1, 100], 200);
    expect(logarithmic.at(10)).toBeCloseTo(100);
    expect(logarithmic.valueAt(100)).toBeCloseTo(10);
  });

  it("has round steps, below 1 too, and no step is lost to rounding", () => {
    expect([0.03, 1, 2.1, 7, 60].map((least) => roundStep(least))).toEqual([0.05, 1, 5, 10, 100]);
    expect(multiples(0.1, [0, 0.3])).toHaveLength(4);
  });

  it("goes up to a step above all values, from 0", () => {
    const axis = upwards([3, 112], 210, String);
    expect(axis.span).toEqual([0, 120]);
    expect(axis.ticks(axis.span, 210).map(({ label }) => label)).toEqual(["0", "20", "40", "60", "80", "100", "120"]);
    expect(upwards([2.25], 50, String).span).toEqual([0, 2.5]);
    expect(upwards([], 210, String).span).toEqual([0, 1]);
  });

  it("labels as many places as have room, and those of the shown part alone", () => {
    const axis = places(Array.from({ length: 100 }, (_, at) => String(at + 1000)));
    expect(labelled(axis, 4000)).toHaveLength(100);
    expect(labelled(axis, 500).slice(0, 3)).toEqual([0, 8, 16]);
    expect(axis.ticks([9.5, 12.5], 500).map(({ value }) => value)).toEqual([10, 11, 12]);
  });

  it("labels round times that do not overlap", () => {
    expect(labelled(along([0, 215], String), 440)).toEqual([0, 50, 100, 150, 200]);
  });

  it("has a line at each power of ten, and labels for those that have room", () => {
    const axis = decades([1, 1e6], (value) => value.toExponential(0));
    expect(labelled(axis, 600)).toHaveLength(7);
    expect(labelled(axis, 120)).toHaveLength(4);
    expect(axis.ticks(axis.span, 120)).toHaveLength(7);
    expect(decadesAround([30, 2e4])).toEqual([10, 1e5]);
  });

  it("moves names up that would overlap, and no others", () => {
    const name = (y: number, right = 400) => ({ text: "FP16: 990 TFLOP/s", right, y });
    expect(apart([name(100), name(97), name(40)])).toEqual([100, 86, 40]);
    expect(apart([name(100), name(97, 100)])).toEqual([100, 97]);
    expect(apart([name(100), name(97), name(95)])).toEqual([100, 86, 72]);
  });
});
