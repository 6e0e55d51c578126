import { describe, expect, it } from "vitest";
import { filled } from "../../testing/filled";
import { blockOf, sequenceOf } from "./sequence";

const row = (number: number, modules: string, time_ns: number, graph = "abc") =>
  filled("CompiledRow", {
    graph,
    number,
    kernel: `triton_${number}`,
    modules,
    time_ns,
    shared: modules.includes(", "),
  });

describe("the launches of compiled code", () => {
  it("are drawn in the order of their wrapper, those of one block together", () => {
    const rows = [
      row(3, "blocks.1.fc", 30),
      row(1, "blocks.0.norm", 10),
      row(2, "blocks.0.fc", 20),
      row(1, "", 5, "z"),
    ];
    const root = sequenceOf(rows);
    expect(root.ns).toBe(65);
    expect(root.below.map(({ label }) => label)).toEqual(["abc", "z"]);
    const runs = root.below[0]!.below;
    expect(runs.map(({ label, ns }) => [label, ns])).toEqual([
      ["blocks.0", 30],
      ["blocks.1", 30],
    ]);
    expect(runs[0]!.below.map(({ label }) => label)).toEqual(["triton_1", "triton_2"]);
    expect(runs[0]!.colour).not.toBe(runs[1]!.colour);
    expect(root.below[1]!.below[0]!.label).toBe("unknown module");
  });

  it("that several modules share are hatched, and of no block where these differ", () => {
    const shared = sequenceOf([row(1, "blocks.0.fc, blocks.1", 10)]).below[0]!.below[0]!;
    expect(shared.label).toBe("several");
    expect(shared.below[0]!.hatched).toBe(true);
  });

  it("have as their block the path up to its first number", () => {
    expect(["blocks.3.fc", "layer1.0.conv1", "head"].map(blockOf)).toEqual(["blocks.3", "layer1", "head"]);
  });
});
