import { afterEach, describe, expect, it, vi } from "vitest";
import { runs } from "../testing/fixtures";
import { formatHash, parseHash, readPairs, writePairs } from "./hash";
import { defaultPair, describeEntry, resolveChoice } from "./profileChoice";
import { followTheme } from "./theme";
import { INITIAL_STATE, NO_PROFILE, pairsToState, stateToPairs, type ViewState } from "./viewState";

const FULL: ViewState = {
  page: "compare",
  profile: { run: "resnet50/fp32 & more=1", session: "s1", rank: 0, cycle: 3, keyNode: "conv1/conv2d & more" },
  range: { first: 2, last: 7 },
  op: "op#1",
  about: { kind: "module", id: "layer1.0 & more" },
  module: ":optimizer",
  kernel: "k 1",
  iteration: 4,
  event: "c123",
  finding: "f1",
  severities: ["high", "low"],
  dismissed: ["tf32_off", "amp_not_used"],
  resolved: { run: "another/run", rules: ["dataloader_bound"] },
  precision: "bf16",
  device: "cpu",
  report: "kernel_groups",
  a: { run: "a", session: null, rank: 1, cycle: null, keyNode: "head", range: { first: 0, last: 0 } },
  b: { run: "b", session: "x", rank: null, cycle: 0, keyNode: null, range: null },
  bucket: "casts",
  pairModule: ".",
  pair: "0123456789ab",
  runsTab: "sweep",
  base: "resnet50/fp32",
  over: "batch_size",
  measure: "share",
  share: "op:conv2d bprop",
};

afterEach(() => {
  vi.unstubAllGlobals();
  window.location.hash = "";
});

describe("the address", () => {
  it("gives back every part of the state", () => {
    expect(pairsToState(parseHash(formatHash("#tb_dlprof", stateToPairs(FULL))))).toEqual(FULL);
  });

  it("leaves defaults out", () => {
    expect(stateToPairs(INITIAL_STATE)).toEqual([]);
    expect(formatHash("", [])).toBe("#tb_dlprof");
  });

  it("keeps what belongs to others", () => {
    expect(formatHash("#tb_dlprof&p.tb_dlprof.run=old&p.other.key=1", [["run", "new"]])).toBe("#tb_dlprof&p.tb_dlprof.run=new&p.other.key=1");
  });

  it("takes nonsense for the default", () => {
    const pairs = parseHash("#tb_dlprof&p.tb_dlprof.page=nowhere&p.tb_dlprof.rank=-1&p.tb_dlprof.first=5&p.tb_dlprof.last=2&p.tb_dlprof.op=%E0%A4%A");
    expect(pairsToState(pairs)).toEqual({ ...INITIAL_STATE, op: "%E0%A4%A" });
  });

  it("names the run of what is done only where another one is shown", () => {
    const resolved = { run: FULL.profile.run, rules: ["tf32_off"] };
    const pairs = new Map(stateToPairs({ ...FULL, resolved }));
    expect([pairs.get("resolved"), pairs.has("resolvedRun")]).toEqual(["tf32_off", false]);
    expect(pairsToState(pairs).resolved).toEqual(resolved);
    expect(formatHash("", stateToPairs(FULL))).toContain("p.tb_dlprof.dismissed=tf32_off,amp_not_used&");
    expect(new Map(stateToPairs(FULL)).get("resolvedRun")).toBe("another/run");
    expect(pairsToState([["resolvedRun", "x"]]).resolved).toEqual(INITIAL_STATE.resolved);
  });

  it("reads lists without what cannot be in them", () => {
    const state = pairsToState([
      ["severity", "low,severe,high,low"],
      ["dismissed", "a_1,,a_1,<b>,c-2,../d"],
      ["resolved", Array.from({ length: 900 }, (_, index) => `r${index}`).join(",")],
    ]);
    expect([state.severities, state.dismissed]).toEqual([["high", "low"], ["a_1", "c-2"]]);
    expect(state.resolved.rules).toHaveLength(200);
  });

  it("is the iframe's own where the parent may not be touched", () => {
    const stranger = {
      get document(): Document {
        throw new DOMException("cross-origin", "SecurityError");
      },
    };
    vi.spyOn(window, "parent", "get").mockReturnValue(stranger as unknown as Window & typeof globalThis);
    writePairs([["run", "fp32"]]);
    expect(readPairs()).toEqual([["run", "fp32"]]);
    expect(window.location.hash).toBe("#tb_dlprof&p.tb_dlprof.run=fp32");
  });

  it("is the iframe's own, whole, where the page stands alone in a notebook", () => {
    const replaceState = vi.spyOn(window.history, "replaceState");
    const parent = { document: {}, location: { hash: "#of-the-notebook" }, history: { replaceState: vi.fn() } };
    vi.spyOn(window, "parent", "get").mockReturnValue(parent as unknown as Window & typeof globalThis);
    window.history.replaceState(null, "", "?name=tb_dlprof&alone=1#tb_dlprof&p.tb_dlprof.run=amp");
    expect(readPairs()).toEqual([["run", "amp"]]);
    writePairs([["run", "fp32"]]);
    expect(replaceState.mock.lastCall?.[2]).toMatch(/^\w+:.*\?name=tb_dlprof&alone=1#tb_dlprof&p\.tb_dlprof\.run=fp32$/);
    expect(parent.history.replaceState).not.toHaveBeenCalled();
    window.history.replaceState(null, "", window.location.pathname);
  });

  it("is left alone while another tab of TensorBoard is open", () => {
    const replaceState = vi.fn();
    const parent = { document: {}, location: { hash: "#scalars" }, history: { state: null, replaceState } };
    vi.spyOn(window, "parent", "get").mockReturnValue(parent as unknown as Window & typeof globalThis);
    writePairs([["run", "fp32"]]);
    expect(replaceState).not.toHaveBeenCalled();
    parent.location.hash = "#tb_dlprof";
    writePairs([["run", "fp32"]]);
    expect(replaceState).toHaveBeenCalledWith(null, "", "#tb_dlprof&p.tb_dlprof.run=fp32");
  });
});

describe("the choice of a profile", () => {
  it("defaults to the newest session, the lowest rank and the last cycle", () => {
    const choice = resolveChoice(runs.runs, { ...NO_PROFILE, run: "vgg16/ddp" });
    expect(choice).toMatchObject({ session: "b", rank: 0, cycle: 1, sessions: ["a", "b"], ranks: [0, 1], cycles: [0, 1] });
  });

  it("keeps a run that the logdir does not have, for the server to answer", () => {
    expect(resolveChoice(runs.runs, { ...NO_PROFILE, run: "gone" })).toMatchObject({ run: "gone", entry: null });
    expect(resolveChoice([], NO_PROFILE)).toBeNull();
  });

  it("lists runs in natural order and names the device only where it differs", () => {
    const [entry] = runs.runs;
    const many = ["run10", "run2", "run1"].map((run) => ({ ...entry!, run }));
    expect(resolveChoice(many, NO_PROFILE)?.runs).toEqual(["run1", "run2", "run10"]);
    expect(describeEntry(many[0]!, many)).toBe("ResNet50 · fp32");
    expect(describeEntry(many[0]!, [...many, { ...entry!, device: "NVIDIA A100" }])).toBe("ResNet50 · fp32 · NVIDIA H200");
  });

  it("compares full precision with AMP of the same model at first", () => {
    expect(defaultPair(runs.runs, "vgg16/ddp")).toEqual({ a: "resnet50/fp32", b: "resnet50/amp" });
    expect(defaultPair(runs.runs.slice(2), "vgg16/ddp")).toBeNull();
    expect(defaultPair(runs.runs.slice(1), "vgg16/ddp")).toEqual({ a: "vgg16/ddp", b: "resnet50/amp" });
  });
});

describe("the theme", () => {
  it("is what a notebook asks for", () => {
    window.history.replaceState(null, "", "?alone=1&theme=dark");
    const seen: string[] = [];
    followTheme((theme) => seen.push(theme))();
    window.history.replaceState(null, "", window.location.pathname);
    expect(seen).toEqual(["dark"]);
  });

  it("follows the class of TensorBoard's body", async () => {
    const body = document.createElement("body");
    vi.spyOn(window, "parent", "get").mockReturnValue({ document: { body } } as unknown as Window & typeof globalThis);
    const seen: string[] = [];
    const stop = followTheme((theme) => seen.push(theme));
    body.classList.add("dark-mode");
    await new Promise((resolve) => setTimeout(resolve, 0));
    stop();
    expect(seen).toEqual(["light", "dark"]);
  });
});
