/** The tree of the memory at the peak: it sums to its parts, modules hold modules, and categories are its leaves. */
import { describe, expect, it } from "vitest";
import type { MemoryPart } from "../../api/types";
import type { IcicleNode } from "../../components/icicle/layout";
import { partsTree } from "./partsTree";

const part = (module: string, category: MemoryPart["category"], bytes: number): MemoryPart => ({
  module,
  category,
  bytes,
});
const LABELS = new Map([["activations", "Activations"]]);
const PARTS = [
  part("a.b", "activations", 4),
  part("a", "parameters", 3),
  part("a.b", "parameters", 1),
  part("", "before", 2),
];

const below = (node: IcicleNode): [string, number][] => node.below.map(({ key, ns }) => [key, ns]);

describe("partsTree", () => {
  const root = partsTree(PARTS, LABELS);

  it("sums to its parts at each level", () => {
    expect(root.ns).toBe(10);
    const check = (node: IcicleNode): void => {
      if (node.below.length > 0) expect(node.below.reduce((sum, { ns }) => sum + ns, 0)).toBe(node.ns);
      node.below.forEach(check);
    };
    check(root);
  });

  it("has modules in modules, the largest first, and categories in each", () => {
    expect(below(root)).toEqual([
      ["a", 8],
      [".#before", 2],
    ]);
    expect(below(root.below[0]!)).toEqual([
      ["a.b", 5],
      ["a#parameters", 3],
    ]);
    expect(root.below[0]!.below[0]!.below.map(({ label }) => label)).toEqual(["Activations", "parameters"]);
  });

  it("says what a rectangle is and how much of all", () => {
    expect(root.below[1]!.tip(1)).toBe("before, of no module\n2.00 B, 20.0 %");
  });
});
