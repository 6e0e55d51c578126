import { afterEach, describe, expect, it } from "vitest";
import { layOut } from "../../components/icicle/layout";
import { readAddress } from "../../testing/address";
import { filled, filledAll } from "../../testing/filled";
import { kernelParts, opParts, treeOf, typeParts, wayTo } from "./workNodes";
import { notPossible, workView } from "./workView";

const OPS = filledAll("OpRow", [
  { id: "a", module: "stem.conv", op_type: "conv2d", gpu_ns: 60, cpu_total_ns: 1, tc_eligible: "yes", using_tc: "yes" },
  {
    id: "b",
    module: "stem.conv",
    op_type: "conv2d",
    direction: "backward",
    gpu_ns: 20,
    cpu_total_ns: 4,
    tc_eligible: "yes",
    using_tc: "no",
  },
  {
    id: "c",
    module: "",
    op_type: "add_",
    role: "optimizer",
    gpu_ns: 20,
    cpu_total_ns: 5,
    tc_eligible: "no",
    using_tc: "no",
  },
]);

const drawn = (root: Parameters<typeof layOut>[0]) =>
  layOut(root, 1000).map(({ node, level, width }) => [node.label, level, Math.round(100 * width)]);

describe("the work as an icicle", () => {
  it("holds ops in the modules that call them, the rest by the part of the step", () => {
    const root = treeOf("all ops", opParts(OPS, true));
    expect(drawn(root)).toEqual([
      ["all ops", 0, 100],
      ["stem", 1, 80],
      ["outside modules: optimizer", 1, 20],
      ["conv", 2, 80],
      ["add_", 2, 20],
      ["conv2d", 3, 60],
      ["conv2d (backward)", 3, 20],
    ]);
    expect(wayTo(root, "m:stem.conv").map(({ label }) => label)).toEqual(["all ops", "stem", "conv"]);
    expect(wayTo(root, "gone").map(({ label }) => label)).toEqual(["all ops"]);
  });

  it("is as wide as the CPU time without a GPU, and has no Tensor Core share then", () => {
    const root = treeOf("all ops", opParts(OPS, false));
    expect(root.ns).toBe(10);
    expect(new Set([root, ...root.below].map(({ colour }) => colour)).size).toBe(1);
    expect(root.tip(1)).not.toContain("Tensor Cores");
  });

  it("tells time on Tensor Cores, off them, of what cannot use them and unknown apart", () => {
    const root = treeOf("all ops", opParts(OPS, true));
    const [stem, outside] = root.below;
    expect(stem!.tip(1)).toContain("On Tensor Cores 75.0 % of 80.0 ns");
    expect(outside!.tip(1)).toContain("Nothing in it could use Tensor Cores");
    const unknown = treeOf("x", [{ path: [{ key: "k", label: "k" }], ns: 10, tensorCores: "unknown" }]);
    expect([unknown.hatched, stem!.hatched]).toEqual([true, false]);
    expect(new Set([stem!.colour, outside!.colour, unknown.colour]).size).toBe(3);
  });

  it("holds the kernels of the ops of a type, per step where that is asked for", () => {
    const tree = filled("WorkTree", {
      has_gpu: true,
      kernels: [{ id: "k1", short_name: "gemm", tensor_core: "yes" }],
      ops: [
        { id: "a", module: "fc", op_type: "linear", tc_eligible: "yes", time_ns: 100, kernels: [0], kernel_ns: [70] },
        { id: "b", module: "", op_type: "relu", tc_eligible: "no", time_ns: 40, kernels: [], kernel_ns: [] },
      ],
    });
    expect(drawn(treeOf("all", typeParts(tree, new Set(["linear", "relu"]))))).toEqual([
      ["all", 0, 100],
      ["linear", 1, 71],
      ["relu", 1, 29],
      ["fc", 2, 71],
      ["relu", 2, 29],
      ["gemm", 3, 50],
    ]);
    const filtered = treeOf("all", typeParts(tree, new Set(["relu"])));
    expect(filtered.ns).toBe(40);
    expect(filtered.tip(2)).toContain("GPU time 20 ns");
  });

  it("holds kernels by family", () => {
    const rows = filledAll("KernelRow", [
      { id: "k1", family: "gemm", short_name: "a", total_ns: 30, tensor_core: "yes" },
      { id: "k2", family: "gemm", short_name: "b", total_ns: 10, tensor_core: "no" },
      { id: "k3", family: "copy", short_name: "c", total_ns: 10, tensor_core: "no" },
    ]);
    expect(drawn(treeOf("all kernels", kernelParts(rows))).map(([label]) => label)).toEqual([
      "all kernels",
      "gemm",
      "copy",
      "a",
      "b",
      "c",
    ]);
  });
});

describe("the views of a grouping", () => {
  afterEach(() => readAddress([]));

  it("are the table but for modules, until one is chosen for all", () => {
    readAddress([]);
    expect((["ops", "modules", "roofline"] as const).map(workView)).toEqual(["table", "icicle", "roofline"]);
    readAddress([["view", "table"]]);
    expect((["ops", "modules", "roofline"] as const).map(workView)).toEqual(["table", "table", "roofline"]);
  });

  it("say in one sentence why one is not possible", () => {
    expect(notPossible("ops", "roofline", true)).toBeNull();
    expect(notPossible("ops", "roofline", false)).toContain("no GPU in this recording");
    expect(notPossible("kernels", "roofline", true)).toContain("counted by op");
    expect(notPossible("kernels", "icicle", true)).toBeNull();
    expect(notPossible("launches", "icicle", true)).toContain("no icicle");
    expect(notPossible("launches", "table", true)).toBeNull();
  });
});
