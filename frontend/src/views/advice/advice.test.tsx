import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AdvicePage as AdviceData, FindingItem } from "../../api/types";
import { App } from "../../shell/App";
import { kernelParam, moduleParam, opParam, profileParam } from "../../state/sharedParams";
import { NO_PROFILE } from "../../state/profile";
import { readAddress } from "../../testing/address";
import * as fixtures from "../../testing/fixtures";
import { evidenceTarget } from "./evidence";
import { Inline, plainText } from "./Inline";
import { runsWithChange } from "./OtherRuns";
import { dismissedParam, findingParam, resolvedParam } from "./params";
import { matching } from "./RuleList";
import { scaleOf } from "./SavingLine";
import { asideOf, namesSetAside, setAside } from "./setAside";
import { filled } from "../../testing/filled";

const [amp, cudnn] = fixtures.advice.findings as [FindingItem, FindingItem];
const loader = filled("FindingItem", {
  ...amp,
  id: "f2",
  rule: "loader",
  severity: "medium",
  title: "Load data in worker processes",
});
const three = filled("AdvicePage", { ...fixtures.advice, findings: [amp, loader, cudnn] });

let root: HTMLElement;
let asked: URL[];

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

async function open(pairs = "", answer: AdviceData = three): Promise<void> {
  window.location.hash = `#tb_dlprof&p.tb_dlprof.page=advice&p.tb_dlprof.run=resnet50/fp32${pairs}`;
  vi.stubGlobal("fetch", async (address: URL) => {
    asked.push(address);
    const body = {
      runs: fixtures.runs,
      advice: answer,
      forecast: fixtures.forecast,
      compare: fixtures.compare,
      ops: fixtures.ops,
      op: fixtures.op,
    }[address.pathname.split("/").pop()!];
    return new Response(JSON.stringify(body));
  });
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
  await settle();
}

const byId = (id: string, within: Element = root): HTMLElement | null => within.querySelector(`[data-testid="${id}"]`);
const card = (rule: string): HTMLElement => byId(`finding-${rule}`)!;
const shown = (): string[] =>
  [...root.querySelectorAll("article.finding")].map((found) =>
    found.getAttribute("data-testid")!.replace("finding-", ""),
  );
const lastAdviceQuery = (): URLSearchParams =>
  asked.filter((address) => address.pathname.endsWith("/advice")).at(-1)!.searchParams;

async function click(element: Element | null): Promise<void> {
  await act(() => (element as HTMLElement).click());
  await settle();
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1000);
  asked = [];
});

afterEach(() => {
  render(null, root);
  root.remove();
  vi.unstubAllGlobals();
  window.location.hash = "";
});

describe("the findings", () => {
  it("show the price and the change, and only the first one its details", async () => {
    await open();
    expect(shown()).toEqual(["amp", "loader", "cudnn_benchmark"]);
    expect(document.getElementById(card("amp").getAttribute("aria-labelledby")!)?.textContent).toBe(
      "1. Train with automatic mixed precision",
    );
    expect(card("amp").querySelector(".price-amount")?.textContent).toBe("58.0 ms");
    expect(card("loader").textContent).not.toContain(loader.change);
    expect(card("loader").textContent).not.toContain("What was seen");
    await click(byId("finding-details", card("amp")));
    expect(card("amp").textContent).toContain("What was seen");
    expect(card("amp").textContent).toContain("The model needs FP32.");
    expect(card("cudnn_benchmark").textContent).toContain("saving unknown");
  });

  it("unfold with a button that says so", async () => {
    await open();
    const button = byId("finding-details", card("cudnn_benchmark"))!;
    expect(button.getAttribute("aria-expanded")).toBe("false");
    await click(button);
    expect(button.getAttribute("aria-expanded")).toBe("true");
    const details = document.getElementById(button.getAttribute("aria-controls")!)!;
    expect(details.hidden).toBe(false);
    expect(details.textContent).toContain("is not recorded");
    await click(byId("open-all"));
    expect(root.querySelectorAll('[data-testid="finding-details"][aria-expanded="true"]')).toHaveLength(3);
    await click(byId("open-all"));
    expect(root.querySelectorAll('[data-testid="finding-details"][aria-expanded="true"]')).toHaveLength(0);
  });

  it("open and take the focus where the address names them", async () => {
    await open("&p.tb_dlprof.finding=f3");
    expect(document.activeElement).toBe(card("cudnn_benchmark"));
    expect(card("cudnn_benchmark").textContent).toContain("is not recorded");
  });

  it("are filtered by severity, which the address remembers", async () => {
    await open();
    const [high, medium] = [...byId("severity-filter")!.querySelectorAll("button")];
    await click(medium!);
    expect(shown()).toEqual(["loader"]);
    expect(medium!.getAttribute("aria-pressed")).toBe("true");
    expect(window.location.hash).toContain("p.tb_dlprof.severity=medium");
    await click(high!);
    expect(shown()).toEqual(["amp", "loader"]);
    await click(high!);
    await click(medium!);
    expect(shown()).toHaveLength(3);
    expect(window.location.hash).not.toContain("severity");
  });

  it("say what they save together and why it is less than the sum", async () => {
    await open();
    expect(byId("together-saving")?.dataset["value"]).toBe("60000000");
    expect(byId("advice-together")?.textContent).toContain("One by one they save 69.0 ms,");
  });

  it("have no common price where there is one saving", async () => {
    await open("", { ...three, combined: { ...three.combined!, findings: 1 } });
    expect(byId("advice-together")).toBeNull();
  });

  it("lead to the comparison with a run in the precision that they advise", async () => {
    const findings = three.findings.map((one) => ({ ...one, rule: one.rule === "amp" ? "amp_not_used" : one.rule }));
    await open("", { ...three, findings });
    await click(byId("open-all"));
    expect(byId("other-runs", card("cudnn_benchmark"))).toBeNull();
    const links = [...byId("other-runs", card("amp_not_used"))!.querySelectorAll("button")];
    expect(links.map((link) => link.textContent)).toEqual(["resnet50/amp"]);
    await click(links[0]!);
    for (const pair of ["page=compare", "a.run=resnet50%2Ffp32", "b.run=resnet50%2Famp"])
      expect(window.location.hash).toContain(`p.tb_dlprof.${pair}`);
  });
});

describe("findings set aside", () => {
  it("are dismissed into the address, with the way back in their place and in a list", async () => {
    await open();
    await click(byId("finding-dismiss", card("amp")));
    expect(shown()).toEqual(["loader", "cudnn_benchmark"]);
    expect(window.location.hash).toContain("p.tb_dlprof.dismissed=amp");
    expect(lastAdviceQuery().get("set_aside")).toBe("amp");
    expect(byId("dismissed-findings")?.querySelector("summary")?.textContent).toBe("1 dismissed");
    const undo = byId("finding-notice")!.querySelector("button")!;
    expect(document.activeElement).toBe(undo);
    await click(undo);
    expect(shown()).toEqual(["amp", "loader", "cudnn_benchmark"]);
    expect(document.activeElement).toBe(card("amp"));
    expect(byId("finding-notice")).toBeNull();
    expect(window.location.hash).not.toContain("dismissed");
  });

  it("are read from the address, and come back from their list", async () => {
    await open("&p.tb_dlprof.dismissed=amp,gone&p.tb_dlprof.resolved=loader");
    expect(shown()).toEqual(["cudnn_benchmark"]);
    expect(lastAdviceQuery().get("set_aside")).toBe("amp,gone,loader");
    expect(byId("resolved-findings")?.textContent).toContain("1 marked as done");
    expect(byId("resolved-findings")?.textContent).toContain("record the run again");
    expect(byId("finding-notice")).toBeNull();
    await click(byId("resolved-loader")!.querySelector("button"));
    expect(shown()).toEqual(["loader", "cudnn_benchmark"]);
    expect(window.location.hash).not.toContain("resolved");
    expect(window.location.hash).toContain("dismissed=amp,gone");
  });

  it("come back through a filter that would hide them", async () => {
    await open("&p.tb_dlprof.dismissed=amp&p.tb_dlprof.severity=low");
    expect(shown()).toEqual(["cudnn_benchmark"]);
    await click(byId("dismissed-amp")!.querySelector("button"));
    expect(shown()).toContain("amp");
    expect(window.location.hash).not.toContain("severity");
  });

  it("leave a sentence where nothing is left", async () => {
    await open("&p.tb_dlprof.dismissed=amp,loader,cudnn_benchmark");
    expect(byId("nothing-shown")?.textContent).toBe("All findings are dismissed or done.");
  });

  it("are done in one run only, dismissed in every run", () => {
    readAddress([["run", "a"]]);
    setAside("x", "resolved");
    setAside("y", "dismissed");
    expect(["x", "y", "z"].map(asideOf)).toEqual(["resolved", "dismissed", null]);
    expect(namesSetAside()).toEqual(["x", "y"]);
    profileParam.value = { ...NO_PROFILE, run: "b" };
    expect(["x", "y"].map(asideOf)).toEqual([null, "dismissed"]);
    profileParam.value = { ...NO_PROFILE, run: "a" };
    // Marked in another way, it leaves the first list.
    setAside("x", "dismissed");
    expect([dismissedParam.value, resolvedParam.value.rules]).toEqual([["y", "x"], []]);
  });
});

describe("the silent rules", () => {
  it("are folded away, by topic, searchable, and say when one failed", async () => {
    await open();
    const list = byId("silent-rules") as HTMLDetailsElement;
    expect(list.open).toBe(false);
    expect(list.querySelector("summary")?.textContent).toBe("3 of 5 rules gave no finding, 1 of them failed");
    expect([...list.querySelectorAll("h3")].map((heading) => heading.textContent)).toEqual(["Memory", "Copies"]);
    const search = byId("rules-search") as HTMLInputElement;
    await act(() => {
      search.value = "cpu WAITS";
      search.dispatchEvent(new Event("input", { bubbles: true }));
    });
    expect([...list.querySelectorAll("li")].map((row) => row.dataset["testid"])).toEqual(["rule-sync_copies"]);
    expect(list.querySelector('[role="status"]')?.textContent).toBe("1 of 3");
  });

  it("match by every word and by outcome", () => {
    const rules = fixtures.advice.rules.filter((rule) => rule.outcome !== "fired");
    const found = (search: string, outcome = ""): string[] => matching(rules, search, outcome).map((rule) => rule.rule);
    expect(found("copies")).toEqual(["sync_copies", "broken"]);
    expect(found("copies", "failed")).toEqual(["broken"]);
    expect(found("copies zero")).toEqual(["broken"]);
    expect(found("  ")).toHaveLength(3);
    expect(found("nothing of the kind")).toEqual([]);
  });
});

describe("helpers", () => {
  it("give every saving room on one scale", () => {
    const saving = amp.saving!;
    expect(scaleOf([null, saving])).toEqual({ low: 0, high: 66_000_000 });
    expect(scaleOf([saving, { ...saving, low_ns: -5, high_ns: 1e9 }])).toEqual({ low: -5, high: 1e9 });
    expect(scaleOf([])).toEqual({ low: 0, high: 0 });
  });

  it("lead to the row that a finding rests on", () => {
    const row = filled("EvidenceRow", {});
    expect(evidenceTarget({ ...row, page: "tensor_cores", id: "o" })).toEqual({
      page: "ops",
      changes: [opParam.to("o")],
    });
    expect(evidenceTarget({ ...row, page: "modules", id: "layer1" })).toEqual({
      page: "modules",
      changes: [moduleParam.to("layer1")],
    });
    expect(evidenceTarget({ ...row, page: "launches", id: "" })).toEqual({
      page: "launches",
      changes: [opParam.to(null), kernelParam.to(null), findingParam.to(null)],
    });
    expect(evidenceTarget({ ...row, page: "nowhere", id: "o" })).toBeNull();
  });

  it("read code and links in a rule's text, and nothing else", () => {
    const text = "Set `a < b`, see [docs](https://x.org/a) or [here](../x.md), not <b>[`.";
    act(() => render(<Inline text={text} />, root));
    expect(root.innerHTML).toContain("<code>a &lt; b</code>");
    expect([...root.querySelectorAll("a")].map((link) => [link.textContent, link.getAttribute("href")])).toEqual([
      ["docs", "https://x.org/a"],
    ]);
    expect(root.textContent).toBe("Set a < b, see docs or here, not <b>[`.");
    expect(plainText(text)).toBe(root.textContent);
  });

  it("name runs of the same model with the change of a rule, the newest first", () => {
    const [entry] = fixtures.runs.runs;
    const make = (run: string, model: string | null, created: number | null, precision = "bf16") => ({
      ...entry!,
      run,
      model,
      created_unix_ns: created,
      precision,
    });
    const entries = [
      make("a", "M", 1, "fp32"),
      make("b", "M", 5),
      make("c", "M", 9),
      make("b", "M", 6),
      make("d", "N", 9),
      make("t", "M", 8, "tf32"),
      make("e", null, 1, "fp32"),
    ];
    expect(runsWithChange(entries, "a", "amp_not_used")).toEqual(["c", "b"]);
    expect(runsWithChange(entries, "a", "tf32_off")).toEqual(["t"]);
    expect(runsWithChange(entries, "a", "channels_last")).toEqual([]);
    expect(runsWithChange(entries, "c", "amp_not_used")).toEqual([]);
    expect(runsWithChange(entries, "e", "amp_not_used")).toEqual([]);
    expect(runsWithChange(entries, null, "amp_not_used")).toEqual([]);
  });
});
