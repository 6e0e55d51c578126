import { describe, expect, it } from "vitest";
import type { MemoryIteration } from "../../api/types";
import { byteStep, drawnLimit, iterationAt, labelledEvery, momentAt, stackedUp, stepsPath } from "./curve";

const MIB = 1024 ** 2;

describe("the curve of allocated memory", () => {
  it("holds each value until the next, the last until the window ends", () => {
    const scale = { at: (value: number) => value, valueAt: (pixel: number) => pixel };
    const plot = { width: 30, height: 10, x: scale, y: scale };
    expect(stepsPath(plot, [0, 10], [5, 7], 30)).toBe("M0.0 5.0V5.0H10.0V7.0H30.0");
    expect(stepsPath(plot, [], [], 30)).toBe("");
  });

  it("finds the moment that holds at a time", () => {
    expect([-1, 0, 9, 10, 29, 99].map((at) => momentAt([0, 10, 30], at))).toEqual([0, 0, 0, 1, 1, 2]);
  });

  it("stacks one category on another", () => {
    expect(
      stackedUp([
        [1, 2],
        [10, 0],
        [0, 5],
      ]),
    ).toEqual([
      [1, 2],
      [11, 2],
      [11, 7],
    ]);
    expect(stackedUp([])).toEqual([]);
  });

  it("has an axis that is round in binary units", () => {
    expect(byteStep(922 * MIB)).toBe(256 * MIB);
    expect(byteStep(3 * MIB)).toBe(MIB);
    expect(byteStep(0)).toBe(1);
    for (let highest = 4; highest < 2 ** 45; highest *= 1.7) {
      expect([3, 4]).toContain(Math.ceil(highest / byteStep(highest)));
    }
  });

  it("draws the device's memory only where the curve stays readable", () => {
    expect(drawnLimit(80, 60)).toBe(80);
    expect(drawnLimit(80, 20)).toBeNull();
    expect(drawnLimit(null, 20)).toBeNull();
  });

  it("finds the iteration of a moment", () => {
    const iterations = [
      { number: 3, start_ns: 0 },
      { number: 4, start_ns: 100 },
    ] as MemoryIteration[];
    expect([0, 99, 100, 500].map((time) => iterationAt(iterations, time))).toEqual([3, 3, 4, 4]);
    expect(labelledEvery(10)).toBe(1);
    expect(labelledEvery(240)).toBe(10);
  });
});
