import { afterEach, describe, expect, it, vi } from "vitest";
import { runs } from "../testing/fixtures";
import { formatHash, parseHash, readPairs, writePairs } from "./hash";
import { defaultPair, describeEntry, precisionPair, resolveChoice } from "./profileChoice";
import { followTheme } from "./theme";
import { ALL_PARAMS } from "../shell/routes";
import { readAddress } from "../testing/address";
import { syncsTable } from "../views/launches/params";
import { opsTable } from "../views/ops/params";
import { reportTable } from "../views/reports/params";
import { dismissedParam, resolvedParam, severitiesParam } from "../views/advice/params";
import { addressPairs, connectAddress } from "./address";
import { goTo, showProfile } from "./navigate";
import type { Pairs } from "./param";
import { opParam, pageParam, profileParam, rangeParam } from "./sharedParams";
import { NO_PROFILE } from "./profile";

/** An address with every parameter away from its default. */
const FULL = parseHash(
  [
    "page=compare&run=resnet50%2Ffp32%20%26%20more%3D1&session=s1&rank=0&cycle=3&keyNode=conv1%2Fconv2d&first=2&last=7&unit=total&columns=shapes&view=icicle&type=conv2d",
    "op=op%231&about=module%3Alayer1.0%20%26%20more&module=%3Aoptimizer&kernel=k%201&iteration=4&event=c123",
    "device=cpu&finding=f1&severity=high,low&dismissed=tf32_off,amp_not_used&resolved=dataloader_bound",
    "resolvedRun=another%2Frun&precision=bf16&report=kernel_groups",
    "a.run=a&a.rank=1&a.keyNode=head&a.first=0&a.last=0&b.run=b&b.session=x&b.cycle=0",
    "bucket=casts&pairModule=.&pair=0123456789ab&runs=sweep&base=resnet50%2Ffp32",
    "batch=256&autocast=bf16&optimizer=adamw&checkpoint=auto&gpu=L4&shard=fsdp2&gpus=4&length=512&side=192&offload=optimizer&relu=inplace",
    "price=0.3&co2=380&steps=5004&lines=0%2C5&line_step=7&heat=pp%2Fdp&against=base%0Aother%2Frun",
    "over=batch_size&measure=share&share=op%3Aconv2d%20backward",
    ..."ops types modules kernels pace gaps syncs delays tc roofline compiled allocations report compare runs models sweep ranks collectives changed_ranks changed_collectives"
      .split(" ")
      .map((table) => `${table}.sort=-calls&${table}.filter.name=a%20%26%20b&${table}.filter.gpu_ns=%3E1ms`),
  ]
    .join("&")
    .replace(/(^|&)/g, "$1p.tb_dlprof."),
);

const spelled = (pairs: Pairs): Pairs => {
  readAddress(pairs);
  return addressPairs(ALL_PARAMS);
};

afterEach(() => {
  vi.unstubAllGlobals();
  window.location.hash = "";
});

describe("the address", () => {
  it("gives back every parameter", () => {
    expect(Object.fromEntries(spelled(FULL))).toEqual(Object.fromEntries(FULL));
    expect(new Set(FULL.map(([key]) => key)).size).toBe(FULL.length);
    expect(rangeParam.value).toEqual({ first: 2, last: 7 });
    expect(parseHash(formatHash("#tb_dlprof", addressPairs(ALL_PARAMS)))).toEqual(addressPairs(ALL_PARAMS));
  });

  it("leaves defaults out, and every parameter has been away from its default above", () => {
    readAddress(FULL);
    expect(ALL_PARAMS.filter((param) => param.pairs().length === 0)).toEqual([]);
    expect(spelled([])).toEqual([]);
    expect(formatHash("", [])).toBe("#tb_dlprof");
  });

  it("keeps what belongs to others", () => {
    expect(formatHash("#tb_dlprof&p.tb_dlprof.run=old&p.other.key=1", [["run", "new"]])).toBe(
      "#tb_dlprof&p.tb_dlprof.run=new&p.other.key=1",
    );
  });

  it("takes nonsense for the default", () => {
    const pairs = parseHash(
      "#tb_dlprof&p.tb_dlprof.page=nowhere&p.tb_dlprof.rank=-1&p.tb_dlprof.first=5&p.tb_dlprof.last=2&p.tb_dlprof.op=%E0%A4%A",
    );
    expect(spelled(pairs)).toEqual([["op", "%E0%A4%A"]]);
  });

  it("names the run of what is done only where another one is shown", () => {
    readAddress(FULL);
    expect(formatHash("", addressPairs(ALL_PARAMS))).toContain("p.tb_dlprof.dismissed=tf32_off,amp_not_used&");
    expect(new Map(addressPairs(ALL_PARAMS)).get("resolvedRun")).toBe("another/run");
    resolvedParam.value = { run: profileParam.value.run, rules: ["tf32_off"] };
    const pairs = new Map(addressPairs(ALL_PARAMS));
    expect([pairs.get("resolved"), pairs.has("resolvedRun")]).toEqual(["tf32_off", false]);
    readAddress([["resolvedRun", "x"]]);
    expect(resolvedParam.value).toEqual({ run: null, rules: [] });
  });

  it("reads lists without what cannot be in them", () => {
    readAddress([
      ["severity", "low,severe,high,low"],
      ["dismissed", "a_1,,a_1,<b>,c-2,../d"],
      ["resolved", Array.from({ length: 900 }, (_, index) => `r${index}`).join(",")],
    ]);
    expect([severitiesParam.value, dismissedParam.value]).toEqual([
      ["high", "low"],
      ["a_1", "c-2"],
    ]);
    expect(resolvedParam.value.rules).toHaveLength(200);
  });

  it("reads the pass of ops as earlier versions spelled it, and leaves DLProf's reports their own words", () => {
    readAddress([
      ["ops.sort", "-role"],
      ["ops.filter.direction", "bprop"],
      ["syncs.filter.role", "optimizer"],
      ["report.filter.direction", "bprop"],
    ]);
    expect(opsTable.value).toEqual({
      sorting: { id: "role", desc: true },
      filters: [{ id: "role", query: "backward" }],
    });
    expect(syncsTable.value.filters).toEqual([{ id: "role", query: "optimizer" }]);
    expect(reportTable.value.filters).toEqual([{ id: "direction", query: "bprop" }]);
  });

  it("keeps the value where its spelling is the same", () => {
    readAddress(FULL);
    const before = profileParam.value;
    readAddress(FULL);
    expect(profileParam.value).toBe(before);
  });

  it("gets an entry of the history for another page or run, and none for what changes on a page", () => {
    window.history.replaceState(null, "", "#tb_dlprof");
    const push = vi.spyOn(window.history, "pushState");
    const disconnect = connectAddress(ALL_PARAMS);
    profileParam.value = { ...NO_PROFILE, run: "a" };
    // The run that the page takes by itself is no step of the user.
    expect(push).toHaveBeenCalledTimes(0);
    opParam.value = "op1";
    expect(window.location.hash).toBe("#tb_dlprof&p.tb_dlprof.run=a&p.tb_dlprof.op=op1");
    expect(push).toHaveBeenCalledTimes(0);
    goTo("kernels");
    expect(push).toHaveBeenCalledTimes(1);
    showProfile({ ...NO_PROFILE, run: "b" });
    expect(push).toHaveBeenCalledTimes(2);
    expect(window.location.hash).toBe("#tb_dlprof&p.tb_dlprof.page=kernels&p.tb_dlprof.run=b");
    // As Back does: the address changes, then the event comes.
    window.history.replaceState(null, "", "#tb_dlprof&p.tb_dlprof.run=a&p.tb_dlprof.op=op1");
    window.dispatchEvent(new Event("hashchange"));
    expect([pageParam.value, profileParam.value.run, opParam.value]).toEqual(["overview", "a", "op1"]);
    expect(push).toHaveBeenCalledTimes(2);
    disconnect();
    goTo("memory");
    expect(window.location.hash).not.toContain("memory");
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
    expect(replaceState.mock.lastCall?.[2]).toMatch(
      /^\w+:.*\?name=tb_dlprof&alone=1#tb_dlprof&p\.tb_dlprof\.run=fp32$/,
    );
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
    expect(choice).toMatchObject({
      session: "b",
      rank: 0,
      cycle: 1,
      sessions: ["a", "b"],
      ranks: [0, 1],
      cycles: [0, 1],
    });
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
    expect(describeEntry(many[0]!, [...many, { ...entry!, device: "NVIDIA A100" }])).toBe(
      "ResNet50 · fp32 · NVIDIA H200",
    );
  });

  it("compares full precision with AMP of the same model at first", () => {
    expect(defaultPair(runs.runs, "vgg16/ddp")).toEqual({ a: "resnet50/fp32", b: "resnet50/amp" });
    expect(defaultPair(runs.runs.slice(2), "vgg16/ddp")).toBeNull();
    expect(defaultPair(runs.runs.slice(1), "vgg16/ddp")).toEqual({ a: "vgg16/ddp", b: "resnet50/amp" });
  });

  it("compares the longest step of the device with most runs at first", () => {
    const named = (run: string, device: string, ms: number, precision = "fp32") => ({
      ...runs.runs[0]!,
      run,
      model: run.split("/")[0]!,
      precision,
      device,
      recorded_iteration_ns: ms,
    });
    const entries = [
      named("cpu/a", "CPU", 900),
      named("cpu/b", "CPU", 900, "amp bf16"),
      named("short/a", "GPU", 10),
      named("short/b", "GPU", 5, "amp bf16"),
      named("long/a", "GPU", 90),
      named("long/b", "GPU", 40, "amp bf16"),
    ];
    expect(precisionPair(entries, null)).toEqual({ a: "long/a", b: "long/b" });
    expect(precisionPair(entries, "cpu/b")).toEqual({ a: "cpu/a", b: "cpu/b" });
    expect(precisionPair(entries.slice(0, 1), null)).toBeNull();
  });

  it("begins with a run that can be read, and shows one that cannot where it is asked for", () => {
    const [first, ...others] = runs.runs;
    const broken = { ...first!, run: '"a"', unreadable: "its name holds a quotation mark" };
    expect(resolveChoice([broken, ...others], NO_PROFILE)?.run).toBe(others[0]!.run);
    expect(resolveChoice([broken, ...others], { ...NO_PROFILE, run: '"a"' })?.run).toBe('"a"');
    expect(resolveChoice([broken], NO_PROFILE)?.run).toBe('"a"');
    expect(defaultPair([broken, ...runs.runs], null)).toEqual({ a: "resnet50/fp32", b: "resnet50/amp" });
    expect(defaultPair([broken, { ...first!, run: "b" }], null)).toEqual({ a: '"a"', b: "b" });
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
