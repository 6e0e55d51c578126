import { describe, expect, it } from "vitest";
import type { ModuleRow } from "../../api/types";
import { filledAll } from "../../testing/filled";
import { moduleRow } from "../../testing/modules";
import { largestPath, shareOf } from "./largestPath";
import { buildTree } from "./tree";

const row = (path: string, gpu_ns: number, children = 0, rest: Partial<ModuleRow> = {}) =>
  moduleRow(path, { gpu_ns, gpu_percent: gpu_ns / 2, children, order: 0, ...rest });
const ROWS = filledAll("ModuleRow", [
  row("", 100, 1, { gpu_backward_ns: 60 }),
  row("net", 100, 2),
  row("net.body", 70, 3, { gpu_backward_ns: 45 }),
  row("net.body.0", 25, 0, { gpu_backward_ns: 5 }),
  row("net.body.1", 24, 0, { gpu_backward_ns: 20 }),
  row("net.body.2", 21, 0, { gpu_backward_ns: 20 }),
  row("net.head", 30, 0, { gpu_backward_ns: 15 }),
]);
const tree = buildTree(ROWS);
const paths = (found: ReturnType<typeof largestPath>) =>
  found && [found.branch.path, found.leaf?.path ?? null, found.elsewhere?.path ?? null];

describe("where most of the icicle's time is", () => {
  it("is the largest branch with its largest leaf, and a larger leaf elsewhere; single modules are passed over", () => {
    expect(paths(largestPath(tree, ".", "gpu", "both"))).toEqual(["net.body", "net.body.0", "net.head"]);
    expect(paths(largestPath(tree, ".", "gpu", "backward"))).toEqual(["net.body", "net.body.1", null]);
  });

  it("follows the module that is drawn, down to its leaves", () => {
    expect(paths(largestPath(tree, "net.body", "gpu", "both"))).toEqual(["net.body.0", null, null]);
    expect(largestPath(tree, "net.head", "gpu", "both")).toBeNull();
  });

  it("takes no module for a leaf whose parts the server left out", () => {
    const cut = buildTree(filledAll("ModuleRow", [row("", 100, 2), row("a", 70, 5), row("b", 30)]));
    expect(paths(largestPath(cut, ".", "gpu", "both"))).toEqual(["a", null, null]);
  });

  it("has the shares of the table, and of a pass those of its time", () => {
    expect(shareOf(tree, ROWS[2]!, "gpu", "both")).toBe(35);
    expect(shareOf(tree, ROWS[2]!, "gpu", "backward")).toBe(75);
    expect(shareOf(tree, { ...ROWS[2]!, gpu_backward_ns: null }, "gpu", "backward")).toBeNull();
  });
});
