import { describe, expect, it } from "vitest";
import type { ModuleRow } from "../../api/types";
import { moduleRow } from "../../testing/modules";
import { step } from "../../components/icicle/Icicle";
import { layOut } from "../../components/icicle/layout";
import { colour, describe as describeRow, moduleNode } from "./nodes";
import { arrange, buildTree, holdsOp, keyAbove, keyOf, keysAbove, labelOf, openAtFirst, type ModuleTree } from "./tree";
import { filledAll } from "../../testing/filled";

const ROWS = filledAll("ModuleRow", [
  moduleRow("", { gpu_ns: 100, order: 0 }),
  moduleRow("body", { gpu_ns: 70, order: 2 }),
  moduleRow("body.1", { gpu_ns: 50, order: 4 }),
  moduleRow("stem", { gpu_ns: 20, order: 1 }),
  moduleRow("body.0", { gpu_ns: 15, order: 3 }),
  moduleRow("", { gpu_ns: 9, role: "optimizer", calls: null }),
]);
const tree = buildTree(ROWS);
const keys = (rows: readonly ModuleRow[]): string[] => rows.map(keyOf);
const cellsOf = (of: ModuleTree, top: string, pixels: number, kept: ReadonlySet<string> | null = null) =>
  layOut(moduleNode(of, top, { model: "Net", hasGpu: true, device: "gpu", direction: "both", kept }), pixels);

describe("the tree", () => {
  it("names each row and what is above it", () => {
    expect(keys(ROWS)).toEqual([".", "body", "body.1", "stem", "body.0", ":optimizer"]);
    expect(["body.1", "body", ".", ":optimizer"].map(keyAbove)).toEqual(["body", ".", null, null]);
    expect(keysAbove("a.b.c")).toEqual(["a.b", "a", "."]);
    expect(ROWS.map((row) => labelOf(row, "Net"))).toEqual([
      "Net",
      "body",
      "body.1",
      "stem",
      "body.0",
      "outside modules: optimizer",
    ]);
  });

  it("shows what is in open modules, siblings as sorted", () => {
    expect(keys(arrange(tree, new Set(["."]), ROWS, false))).toEqual([".", "body", "stem", ":optimizer"]);
    expect(keys(arrange(tree, new Set([".", "body"]), ROWS, false))).toEqual([
      ".",
      "body",
      "body.1",
      "body.0",
      "stem",
      ":optimizer",
    ]);
    const ascending = [...ROWS].reverse();
    expect(keys(arrange(tree, new Set([".", "body"]), ascending, false))).toEqual([
      ":optimizer",
      ".",
      "stem",
      "body",
      "body.0",
      "body.1",
    ]);
    expect(keys(arrange(tree, new Set(["body"]), ROWS, false))).toEqual([".", ":optimizer"]);
  });

  it("keeps those above a row that fits the filters, folded or not", () => {
    const fitting = ROWS.filter((row) => row.path === "body.0");
    expect(keys(arrange(tree, new Set(), fitting, true))).toEqual([".", "body", "body.0"]);
    expect(arrange(tree, new Set(), [], true)).toEqual([]);
  });

  it("opens level by level up to some thirty rows, and the way to the selected module", () => {
    expect([...openAtFirst(tree, null)]).toEqual(expect.arrayContaining([".", "body"]));
    const wide = buildTree([
      moduleRow(""),
      ...Array.from({ length: 100 }, (_, index) => [moduleRow(`m${index}`), moduleRow(`m${index}.x`)]).flat(),
    ]);
    expect([...openAtFirst(wide, null)]).toEqual(["."]);
    expect([...openAtFirst(wide, "m3.x")].sort()).toEqual([".", "m3"]);
  });

  it("tells which ops a module holds", () => {
    expect(holdsOp("body", { module: "body.0", role: "forward" })).toBe(true);
    expect(holdsOp("body", { module: "body", role: "backward" })).toBe(true);
    expect(holdsOp("body", { module: "body2", role: "forward" })).toBe(false);
    expect(holdsOp(":optimizer", { module: "", role: "optimizer" })).toBe(true);
    expect(holdsOp(":optimizer", { module: "", role: "other" })).toBe(false);
  });
});

describe("the icicle", () => {
  it("draws modules in the order of their calls, as wide as their time", () => {
    const cells = cellsOf(tree, ".", 1000);
    expect(cells.map((cell) => [cell.key, cell.level])).toEqual([
      [".", 0],
      ["stem", 1],
      ["body", 1],
      ["body.0", 2],
      ["body.1", 2],
    ]);
    expect(cells.map((cell) => [cell.left, cell.width].map((part) => Math.round(part * 100)))).toEqual([
      [0, 100],
      [0, 20],
      [20, 70],
      [20, 15],
      [35, 50],
    ]);
  });

  it("draws one module over the full width", () => {
    const cells = cellsOf(tree, "body", 1000);
    expect(cells.map((cell) => cell.key)).toEqual(["body", "body.0", "body.1"]);
    expect(cells[2]!.left + cells[2]!.width).toBeCloseTo(65 / 70);
  });

  it("keeps overlapping parts within the module that holds them", () => {
    const overlapping = buildTree([
      moduleRow("", { gpu_ns: 50 }),
      moduleRow("a", { gpu_ns: 40, order: 1 }),
      moduleRow("b", { gpu_ns: 40, order: 2 }),
    ]);
    expect(cellsOf(overlapping, ".", 1000).map((cell) => cell.width)).toEqual([1, 0.5, 0.5]);
  });

  it("merges what is too narrow to draw and loses none of it", () => {
    const wide = buildTree([
      moduleRow("", { gpu_ns: 5000 }),
      ...Array.from({ length: 500 }, (_, index) => moduleRow(`m${index}`, { gpu_ns: 10, order: index + 1 })),
    ]);
    expect(cellsOf(wide, ".", 1400)).toHaveLength(501);
    const narrow = cellsOf(wide, ".", 400).slice(1);
    expect(narrow.length).toBeLessThan(200);
    expect(narrow.reduce((sum, cell) => sum + cell.merged, 0)).toBe(500);
    expect(narrow.reduce((sum, cell) => sum + cell.ns, 0)).toBe(5000);
    expect(narrow.every((cell) => cell.key === ".")).toBe(true);
  });

  it("fills the place of modules that were left out, not that of the module's own time", () => {
    const cut = buildTree([
      moduleRow("", { gpu_ns: 100, gpu_own_ns: 10, children: 5 }),
      moduleRow("a", { gpu_ns: 50, order: 1 }),
    ]);
    const cells = cellsOf(cut, ".", 1000);
    expect(cells.map((cell) => [cell.key, cell.merged, cell.ns])).toEqual([
      [".", 0, 100],
      ["a", 0, 50],
      [".", 4, 40],
    ]);
    expect(cells[2]!.left).toBeCloseTo(0.5);
    expect(cells[2]!.width).toBeCloseTo(0.4);
  });

  it("draws thirty levels", () => {
    const deep = Array.from({ length: 31 }, (_, level) =>
      moduleRow(Array.from({ length: level }, (_, at) => `l${at}`).join("."), { gpu_ns: 100 - level, order: level }),
    );
    const cells = cellsOf(buildTree(deep), ".", 400);
    expect(cells).toHaveLength(31);
    expect(cells[30]!.level).toBe(30);
  });

  it("draws nothing of no time", () => {
    expect(cellsOf(buildTree([moduleRow("", { gpu_ns: 0 })]), ".", 1000)).toEqual([]);
    expect(cellsOf(tree, "gone", 1000)).toEqual([]);
  });

  it("draws only the modules that fit a filter, those around them as long as they are", () => {
    const cells = cellsOf(tree, ".", 1000, new Set([".", "body", "body.1"]));
    expect(cells.map((cell) => [cell.key, Math.round(100 * cell.width)])).toEqual([
      [".", 100],
      ["body", 70],
      ["body.1", 50],
    ]);
  });

  it("is walked with the arrow keys", () => {
    const cells = cellsOf(tree, ".", 1000);
    const key = (index: number | null): string | null => (index === null ? null : cells[index]!.key);
    expect(key(step(cells, 0, "ArrowDown"))).toBe("stem");
    expect(key(step(cells, 1, "ArrowRight"))).toBe("body");
    expect(key(step(cells, 2, "ArrowRight"))).toBeNull();
    expect(key(step(cells, 2, "ArrowDown"))).toBe("body.0");
    expect(key(step(cells, 1, "ArrowDown"))).toBeNull();
    expect(key(step(cells, 4, "ArrowUp"))).toBe("body");
    expect(key(step(cells, 4, "ArrowLeft"))).toBe("body.0");
    expect(step(cells, 0, "x")).toBeNull();
  });

  it("tells no eligible work, unknown use and no GPU apart", () => {
    const colours = [
      moduleRow("a", { eligible_ns: 10, utilization_percent: 100 }),
      moduleRow("a", { eligible_ns: 10, utilization_percent: 0 }),
      moduleRow("a", { eligible_ns: 10, utilization_percent: null }),
      moduleRow("a", { eligible_ns: 0, utilization_percent: null }),
      moduleRow("a", { eligible_ns: null, utilization_percent: null }),
    ].map(colour);
    expect(new Set(colours).size).toBe(5);
  });

  it("says exact times, and unknown where there is none", () => {
    const text = describeRow(
      moduleRow("body.1", { gpu_ns: 1_234_567, gpu_backward_ns: null, eligible_ns: 10, utilization_percent: null }),
      "Net",
      true,
    );
    expect(text.split("\n")[0]).toBe("body.1");
    expect(text).toContain("GPU time 1,234,567 ns");
    expect(text).toContain("backward unknown");
    expect(text).toContain("On Tensor Cores unknown");
    expect(describeRow(moduleRow("a"), "Net", false)).not.toContain("GPU");
  });
});
