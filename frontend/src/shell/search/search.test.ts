import { describe, expect, it } from "vitest";
import { DEFINITIONS } from "../../format/definitions";
import { METRICS } from "../../format/metrics";
import { filterParam, kernelParam } from "../../state/sharedParams";
import * as fixtures from "../../testing/fixtures";
import { search } from "./hits";
import { fit } from "../../format/wordMatch";
import { targetOf } from "./target";
import { filled } from "../../testing/filled";

const { runs } = fixtures.runs;
const answer = filled("SearchPage", {
  ref: fixtures.ref,
  text: "conv",
  iterations: 10,
  found: { op: 106, kernel: 0 },
  hits: [{ kind: "op", id: "op1", label: "conv1/conv2d", detail: "forward", value_ns: 1_500_000, fit: 1 }],
});

describe("the search", () => {
  it("compares words with parts of names", () => {
    expect(fit(["layer1", "conv2"], "layer1.0.conv2/conv2d")).toBe(0);
    expect(fit(["conv"], "layer1.0.conv2/conv2d")).toBe(1);
    expect(fit(["onv"], "layer1.0.conv2/conv2d")).toBe(2);
    expect(fit(["conv", "backward"], "conv1", "backward")).toBe(3);
    expect(fit(["linear"], "conv1")).toBeNull();
  });

  it("shows all pages before a word is typed, then the best group first, with how many there are", () => {
    expect(search("", runs, null).map(({ kind }) => kind)).toEqual(["page"]);
    const groups = search("conv", runs, answer);
    expect(groups[0]).toMatchObject({ kind: "op", found: 106, hits: [{ label: "conv1/conv2d", mark: "1.50 ms" }] });
    expect(search("conv", runs, answer, true)[0]!.hits[0]!.mark).toBe("150 µs");
    expect(search("memory", runs, null).map(({ kind }) => kind)).toEqual(expect.arrayContaining(["page", "metric"]));
    expect(search("vgg16", runs, null).find(({ kind }) => kind === "run")?.hits).toHaveLength(1);
    expect(search("no such thing", runs, null)).toEqual([]);
  });

  it("leads where the thing is shown", () => {
    expect(targetOf({ kind: "kernel", id: "k" }, "compare")).toEqual({
      page: "kernels",
      changes: [kernelParam.to("k"), filterParam.to(null)],
      run: null,
      term: null,
    });
    expect(targetOf({ kind: "run", id: "a" }, "compare")).toMatchObject({ page: "overview", run: "a" });
    expect(targetOf({ kind: "run", id: "a" }, "memory").page).toBe("memory");
    expect(targetOf({ kind: "metric", id: "gpuIdle" }, "compare")).toMatchObject({ page: "launches", term: "gpuIdle" });
  });

  it("knows only measures that are defined", () => {
    for (const { key } of METRICS) expect(DEFINITIONS[key]).toBeTruthy();
    expect(new Set(METRICS.map(({ key }) => key)).size).toBe(METRICS.length);
  });
});
