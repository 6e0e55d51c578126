/** Where the points of memory against time lie, and which one a drag is next to. */
import { describe, expect, it } from "vitest";
import type { CheckpointRow } from "../../api/types";
import { costOf, nearest, placesOf } from "./frontier";

const row = (count: number, mb: number, step: number | null): CheckpointRow => ({
  modules: Array.from({ length: count }, (_, index) => `blocks.${index}`),
  peak_allocated_mb: mb,
  peak_reserved_mb: 2 * mb,
  step_ms: step,
});

describe("the frontier", () => {
  const rows = [row(0, 100, 10), row(1, 80, 11), row(4, 50, 14)];

  it("lies between the least and the most time, and from 0 to the highest reserved memory", () => {
    expect(placesOf(rows)).toEqual([
      { x: 0, y: 0.5 },
      { x: 0.25, y: 0.6 },
      { x: 1, y: 0.75 },
    ]);
  });

  it("counts modules where a step is not known", () => {
    expect(costOf([...rows, row(5, 40, null)])).toEqual([0, 1, 4, 5]);
    expect(placesOf([row(0, 100, null)])).toEqual([{ x: 0, y: 0.5 }]);
  });

  it("is dragged to the point next to the pointer, also from outside", () => {
    const places = placesOf(rows);
    expect([-1, 0.1, 0.2, 0.6, 0.7, 2].map((x) => nearest(places, x))).toEqual([0, 0, 1, 1, 2, 2]);
  });
});
