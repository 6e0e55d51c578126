import { describe, expect, it } from "vitest";
import { compare } from "../../testing/fixtures";
import { keyOfModule, modulesOf, opsOf, timesIn, waterfallSteps } from "./drill";

describe("the waterfall", () => {
  it("leads from the base's step to the candidate's", () => {
    const steps = waterfallSteps(compare);
    const base = compare.buckets.reduce((sum, bucket) => sum + bucket.base_ns, 0);
    expect(steps[0]!.from).toBe(base);
    expect(steps.at(-1)!.to).toBe(34_000_000);
    for (const [index, step] of steps.entries()) {
      expect(step.to - step.from).toBe(step.bucket.difference_ns);
      if (index > 0) expect(step.from).toBe(steps[index - 1]!.to);
    }
  });

  it("leaves out what neither run has", () => {
    expect(waterfallSteps(compare).map((step) => step.bucket.key)).not.toContain("communication");
  });
});

describe("drilling", () => {
  it("shows the modules and ops of a bar alone, by what changed most", () => {
    expect(modulesOf(compare, "casts")).toEqual([]);
    expect(modulesOf(compare, "tensor_core")).toHaveLength(1);
    const ops = opsOf(compare, "casts", keyOfModule(""));
    expect(ops.map((op) => op.id)).toEqual(["pair-cast"]);
    expect(timesIn(ops[0]!, "casts")).toEqual({ a: 0, b: 1_900_000 });
    const own = opsOf(compare, "tensor_core", keyOfModule(compare.ops[0]!.module));
    const changes = own.map((op) => Math.abs(timesIn(op, "tensor_core").b));
    expect(changes).toEqual([...changes].sort((x, y) => y - x));
  });
});
