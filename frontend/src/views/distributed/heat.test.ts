import { expect, it } from "vitest";
import { distributed } from "../../testing/distributed";
import { PARTS, rankRows } from "./account";
import { byIteration, byMesh, strength } from "./heat";

const heat = distributed.heat!;

it("a row is a rank and a column an iteration; ranks that share a row are named by both ends", () => {
  const grid = byIteration({ ...heat, last: [0, 1, 2, 7] });
  expect([grid.rows, grid.columns]).toEqual([
    ["0", "1", "2", "3–7"],
    ["5", "6"],
  ]);
  expect(grid.values).toBe(heat.percent);
  expect(grid.ranks).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
});

it("two dimensions of the mesh lay out the mean of each rank, also of ranks that share a row otherwise", () => {
  const [stage, replica] = distributed.mesh;
  const shared = { ...heat, first: [0], last: [3], percent: [30, 34] };
  const grid = byMesh(shared, distributed.account.rank, stage!, replica!);
  expect(grid.values).toEqual([0, 0.5, 0, 32]);
  expect(grid.ranks[3]).toBe(3);
});

it("a rank whose place in the mesh is unknown has no cell", () => {
  const [stage, replica] = distributed.mesh;
  const lost = { ...stage!, place: [0, 0, -1, 1] };
  expect(byMesh(heat, distributed.account.rank, lost, replica!).values).toEqual([0, 0.5, null, 32]);
});

it("of ranks that share a cell the worst is shown, and it is the one that opens", () => {
  const [stage] = distributed.mesh;
  const one = { name: "tp", size: 1, place: [0, 0, 0, 0] };
  const grid = byMesh(heat, distributed.account.rank, stage!, one);
  expect([grid.values, grid.ranks]).toEqual([
    [0.5, 32],
    [1, 3],
  ]);
});

it("nothing is marked at or below the median, and all above a quarter alike", () => {
  expect([-5, 0, 12.5, 25, 80].map(strength)).toEqual([0, 0, 0.5, 1, 1]);
});

it("the parts of each rank add up to its step", () => {
  for (const row of rankRows(distributed.account)) {
    expect(row.parts).toHaveLength(PARTS.length);
    expect(row.parts.reduce((sum, part) => sum! + part!, 0)).toBe(row.stepNs);
  }
});
