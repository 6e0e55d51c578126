import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { formatNs } from "../format/duration";
import { distributed, otherJobs } from "../testing/distributed";
import * as fixtures from "../testing/fixtures";
import { modules } from "../testing/modules";
import { memory, memoryNotAttributed, memoryNotRecorded } from "../testing/memory";
import { energy } from "../testing/energy";
import { filled } from "../testing/filled";
import { plan } from "../testing/plan";
import { roofline } from "../testing/roofline";
import { loader } from "../testing/loader";
import { tried } from "../testing/tried";
import { App } from "./App";

const ANSWERS: Record<string, unknown> = {
  runs: fixtures.runs,
  overview: fixtures.overview,
  ops: fixtures.ops,
  work_detail: fixtures.op,
  kernels: fixtures.kernels,
  tensor_cores: fixtures.tensorCores,
  roofline,
  memory,
  plan,
  energy,
  loader,
  tried,
  advice: fixtures.advice,
  forecast: fixtures.forecast,
  compare: fixtures.compare,
  trust: fixtures.trust,
  distributed,
  other_jobs: otherJobs,
};

let root: HTMLElement;
let asked: URL[];

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

async function open(hash: string, answers: Record<string, unknown> = ANSWERS): Promise<void> {
  window.location.hash = hash;
  vi.stubGlobal("fetch", async (address: URL) => {
    asked.push(address);
    const answer = answers[address.pathname.split("/").pop()!] as { error?: string };
    // No more rows come than the first answer holds.
    const more = address.searchParams.has("offset") ? { rows: [], ops: [] } : {};
    // As the server's, the revision is another one for other runs.
    const revision = address.pathname.endsWith("/runs") ? { revision: JSON.stringify(answer) } : {};
    const body = answer && { ...answer, ...more, ...revision };
    return new Response(JSON.stringify(body), { status: body.error ? 404 : 200 });
  });
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
  await settle();
}

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);
const hash = (pairs: Record<string, string>): string =>
  `#${["tb_dlprof", ...Object.entries(pairs).map(([key, value]) => `p.tb_dlprof.${key}=${encodeURIComponent(value)}`)].join("&")}`;

/** An address that asks for nothing shows the pair of full precision and AMP. */
const SUMMARY = hash({ page: "overview" });

async function click(element: Element | null): Promise<void> {
  await act(() => (element as HTMLElement).click());
  await settle();
}

async function choose(id: string, value: string): Promise<void> {
  const select = byId(id) as HTMLSelectElement;
  await act(() => {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await settle();
}

/** What the Summary shows only once it is asked for. */
const openMore = (): Promise<void> => openDetails("overview-more");

async function openDetails(id: string): Promise<void> {
  await act(() => {
    const more = byId(id) as HTMLDetailsElement;
    more.open = true;
    more.dispatchEvent(new Event("toggle"));
  });
  await settle();
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  // happy-dom lays nothing out; the virtual rows need a height to fill.
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

describe("each page draws its answer", () => {
  it.each(["overview", "ops", "kernels", "tensor_cores", "roofline", "memory", "plan", "advice"])(
    "%s says whether the recording can be trusted",
    async (page) => {
      await open(hash({ page }));
      expect(byId("trust")?.dataset["verdict"]).toBe("fair");
    },
  );

  it("Compare says it of both runs", async () => {
    await open(hash({ page: "compare", "a.run": "resnet50/fp32", "b.run": "resnet50/amp" }));
    expect([...root.querySelectorAll('[data-testid="trust"] .trust-word')].map((word) => word.textContent)).toEqual([
      "! Base: fair",
      "! Candidate: fair",
    ]);
    expect(asked.filter((url) => url.pathname.endsWith("/trust")).map((url) => url.searchParams.get("run"))).toEqual([
      "resnet50/fp32",
      "resnet50/amp",
    ]);
  });

  it("Overview", async () => {
    await open(SUMMARY);
    expect(byId("overview-step-time")?.dataset["value"]).toBe("98765432");
    expect(byId("overview-step-time")?.textContent).toBe("98.8 ms");
    expect(byId("overview-gpu-utilization")?.dataset["value"]).toBe("74.2");
    expect(byId("overview-tc-utilization")?.dataset["value"]).toBe("14.6");
    expect(byId("overview-top-ops")).toBeNull();
    await openMore();
    expect(byId("overview-top-ops")?.querySelectorAll("tbody tr")).toHaveLength(10);
    expect(byId("coverage")?.textContent).toContain("86.2 % of GPU time is linked to ops");
    expect(byId("coverage")?.querySelector("[data-tip]")?.getAttribute("data-tip")).toContain("of the 940 ms");
    expect(byId("notes")?.textContent).toContain("412");
  });

  it("Overview has the step as one bar whose parts are listed in its order", async () => {
    await open(SUMMARY);
    const account = byId("overview-account")!;
    const drawn = [...account.querySelectorAll<HTMLElement>(".step-bar > span")].map(
      (part) => part.title.split(":")[0],
    );
    const taken = fixtures.overview.account.filter((slice) => slice.value_ns);
    expect(drawn).toEqual(taken.map((slice) => slice.label));
    // Those below 1 % of the step are one line.
    expect([...account.querySelectorAll(".step-legend li")].map((line) => line.textContent)).toEqual([
      "Tensor Core kernels10.7 ms 11 %",
      "Other kernels60.5 ms 61 %",
      "Copies and sets1.50 ms 1.5 %",
      "DataLoader12.0 ms 12 %",
      "CPU launching work9.00 ms 9.1 %",
      "Python between ops4.37 ms 4.4 %",
      "2 others700 µs 0.7 %",
    ]);
    expect(account.querySelector('[data-testid="account-rest"] .term')?.getAttribute("data-tip")).toBe(
      "Casts: 500 µs; Other idle time: 200 µs",
    );
  });

  it("Overview lists the largest layers, which unfold into those in them and lead to their page", async () => {
    await open(SUMMARY, { ...ANSWERS, modules });
    const names = () =>
      [...byId("overview-layers")!.querySelectorAll("tbody .link")].map((link) => link.getAttribute("title"));
    expect(names()).toEqual(["layer1", "head", null]);
    expect(byId("layer-layer1")?.textContent).toContain("10.0 ms30.0 ms50.0 %");
    expect(asked.some(({ pathname }) => pathname.endsWith("/modules"))).toBe(false);
    await click(byId("layer-layer1")!.querySelector(".fold"));
    const inside = modules.rows.filter(({ path }) => /^layer1\.[^.]+$/.test(path)).map(({ path }) => path);
    expect(inside.length).toBeGreaterThan(0);
    expect(names()).toEqual(["layer1", ...inside, "head", null]);
    await click(byId("layer-layer1")!.querySelector(".fold"));
    expect(names()).toEqual(["layer1", "head", null]);
    await click(byId("layer-head")!.querySelector(".link"));
    expect(window.location.hash).toContain("page=modules");
  });

  it("Overview has the choices of one change in one row, each of which opens in its place", async () => {
    const [first, second] = fixtures.advice.findings;
    const findings = [
      { ...first!, alternatives: "Change the precision", choice: "BF16" },
      { ...second!, alternatives: "Change the precision", choice: "TF32" },
    ];
    await open(SUMMARY, { ...ANSWERS, advice: { ...fixtures.advice, findings } });
    const row = byId(`finding-choices-${first!.rule}`)!;
    expect(row.textContent).toContain("Change the precision: BF16 saves 58.0 ms, TF32 (unknown)");
    expect(root.querySelectorAll(".finding-lines > li")).toHaveLength(1);
    await click(byId(`finding-line-${second!.rule}`));
    expect(byId(`finding-${second!.rule}`)?.textContent).toContain(second!.title);
    expect(byId(`finding-choices-${first!.rule}`)?.textContent).toContain("Instead: BF16 saves 58.0 ms");
  });

  it("Overview puts a poor recording's verdict above everything", async () => {
    await open(SUMMARY);
    expect(byId("trust")?.classList.contains("trust-banner")).toBe(false);
    const poor = { ...fixtures.overview, trust: { ...fixtures.overview.trust, verdict: "poor" as const } };
    await act(() => render(null, root));
    await open(SUMMARY, { ...ANSWERS, overview: poor });
    expect(byId("trust")?.classList.contains("trust-banner")).toBe(true);
    expect(byId("trust")!.compareDocumentPosition(byId("headline")!)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  });

  it("Overview opens a finding in place, and takes back one that was set aside", async () => {
    const item = fixtures.advice.findings[0]!;
    await open(SUMMARY);
    const row = (): HTMLElement | null => byId(`finding-line-${item.rule}`);
    expect(row()?.textContent).toContain("saves 58.0 ms (59 %)");
    expect(row()?.querySelector(".finding-line-saving")?.getAttribute("title")).toContain(
      "between 41.0 ms and 66.0 ms",
    );
    await click(row());
    const card = byId(`finding-${item.rule}`)!;
    expect(card.textContent).toContain("What was seen");
    expect(document.activeElement).toBe(card);
    await click(card.querySelector('[data-testid="finding-details"]'));
    expect(byId(`finding-${item.rule}`)).toBeNull();
    expect(document.activeElement).toBe(row());
    await click(row());
    await click(byId(`finding-${item.rule}`)!.querySelector('[data-testid="finding-dismiss"]'));
    expect([row(), byId("finding-notice")?.textContent]).toEqual([null, expect.stringContaining("Dismissed")]);
    await click(byId("finding-notice")!.querySelector("button"));
    expect(row()).not.toBeNull();
  });

  it("Distributed stands in the header of a run of several ranks, recorded or not, and a rank opens from its row", async () => {
    await open(SUMMARY);
    expect(byId("place-distributed")).toBeNull();
    await act(() => render(null, root));
    const [entry] = fixtures.runs.runs;
    await open(SUMMARY, { ...ANSWERS, runs: { ...fixtures.runs, runs: [{ ...entry, world_size: 8 }], total: 1 } });
    expect(byId("place-distributed")).not.toBeNull();
    await act(() => render(null, root));
    const ranks = [0, 1, 2].map((rank) => ({ ...entry, rank, recorded_iteration_ns: rank === 1 ? 120_000 : 100_000 }));
    await open(SUMMARY, { ...ANSWERS, runs: { ...fixtures.runs, runs: ranks, total: 3 } });
    await click(byId("place-distributed"));
    expect(byId("headline")?.textContent).toBe(distributed.headline);
    expect(byId("job-delays")?.textContent).toContain("slow GPU");
    expect(byId("job-what-if")?.textContent).toContain("rank 3 as fast as the median");
    const rows = [...byId("ranks-table")!.querySelectorAll("tbody tr")];
    expect(rows).toHaveLength(4);
    await click(rows[1]!.querySelector("button"));
    expect(window.location.hash).toContain("p.tb_dlprof.rank=1");
    expect(byId("place-summary")?.getAttribute("aria-current")).toBe("page");
  });

  it("Distributed shows a job against others that are picked, and leaves one out again", async () => {
    await open(hash({ page: "distributed", run: "resnet50/fp32" }));
    expect(byId("job-compared-headline")).toBeNull();
    await choose("job-against", "resnet50/amp");
    expect(asked.at(-1)?.searchParams.get("against")).toBe("resnet50/amp");
    expect(byId("job-compared-headline")?.textContent).toBe(otherJobs.headline);
    expect(byId("job-scaling")?.textContent).toContain("81.6 %");
    const parts = byId("job-parts")!.textContent!;
    expect(parts).toContain("unknown");
    expect(parts).toContain("+18");
    await click(byId("job-others")!.querySelector(".chip"));
    expect(byId("job-compared-headline")).toBeNull();
  });

  it("Overview shows unknown, never 0, for what was not recorded", async () => {
    await open(SUMMARY, { ...ANSWERS, overview: { ...fixtures.overviewWithoutGpu, has_gpu: true } });
    for (const id of [
      "overview-gpu-utilization",
      "overview-tc-utilization",
      "overview-samples",
      "overview-peak-memory",
    ]) {
      expect(byId(id)?.textContent).toBe("unknown");
      expect(byId(id)?.dataset["value"]).toBe("unknown");
    }
    await openMore();
    expect(byId("overview-system")?.textContent).toContain("not recorded");
    expect(byId("coverage")).toBeNull();
  });

  it("Overview of a recording without a GPU leaves out what does not apply", async () => {
    await open(SUMMARY, { ...ANSWERS, overview: fixtures.overviewWithoutGpu });
    expect(byId("overview-step-time")?.textContent).toBe("98.8 ms");
    expect(byId("overview-samples")?.textContent).toBe("unknown");
    expect(byId("overview-gpu-utilization")).toBeNull();
    expect(byId("overview-threads")?.textContent).toBe("3");
    expect(byId("overview-account")?.textContent).toContain("No GPU in this recording");
    await openMore();
    expect(byId("overview-performance")?.textContent).not.toContain("GPU");
    expect(root.querySelectorAll(".donut")).toHaveLength(1);
    expect(root.querySelector(".donut .legend")?.textContent).not.toContain("Tensor Cores");
  });

  it("Overview shows what the run computed in, and what its loss scale did", async () => {
    await open(SUMMARY);
    await openMore();
    const precision = byId("overview-precision")!;
    expect(byId("overview-precision-label")?.textContent).toBe("AMP FP16 (autocast)");
    expect(precision.textContent).toContain('The run is called "resnet50/fp32", yet it ran in');
    expect(precision.querySelector("details")?.textContent).toContain("head/linear");
    const health = byId("overview-numeric-health")!;
    expect(health.textContent).toContain("1 of 10 optimizer steps was skipped");
    expect([...health.querySelectorAll("tbody tr")].map((row) => row.textContent)).toEqual([
      "1unknown4,096",
      "01465,536",
    ]);
  });

  it("Overview without loss scaling has no numeric health, and an unknown precision says so", async () => {
    await open(SUMMARY, { ...ANSWERS, overview: fixtures.overviewWithoutGpu });
    await openMore();
    expect(byId("overview-numeric-health")).toBeNull();
    expect(byId("overview-precision-label")?.textContent).toBe("unknown");
  });

  it("Ops with the selected op next to the table", async () => {
    await open(hash({ page: "ops", run: "resnet50/fp32", op: "op1" }));
    expect(byId("op-detail")?.textContent).toContain("which is off");
    expect(byId("op-detail")?.textContent).toContain("50.0 % of the roof of TF32, compute-bound");
    expect(byId("op-detail")?.textContent).toContain(
      "Kernel calls2Mean delay40.0 µsLongest delay90.0 µsGPU idle before it12.0 µs",
    );
    expect(byId("work-longest")?.textContent).toBe("Longest: cutlass_tensorop_s1688dgrad, 6.20 ms in iteration 3.");
    expect(byId("op-detail")?.querySelectorAll("canvas, .chart")).toHaveLength(1);
    expect(root.querySelector("tr.selected")?.textContent).toContain("convolution_backward");
    // 320 rows: only those in sight are drawn.
    expect(byId("ops-table")!.querySelectorAll("tbody tr").length).toBeLessThan(100);
    expect(byId("ops-table")!.textContent).toContain("320 rows, the first of 1,400");
  });

  it("sorting and filters of a table are in the address: a link and a reload show the same rows", async () => {
    const names = () => [...byId("kernels-table")!.querySelectorAll("tbody tr")].map((row) => row.textContent);
    const header = (text: string): HTMLElement =>
      [...byId("kernels-table")!.querySelectorAll<HTMLElement>("th")].find((head) =>
        head.textContent?.startsWith(text),
      )!;
    await open(hash({ page: "kernels", run: "resnet50/fp32" }));
    const all = names();
    const bound = `>${fixtures.kernels.rows[9]!.total_ns / 10} ns`;
    await click(header("Calls").querySelector("button"));
    expect(window.location.hash).toContain("p.tb_dlprof.kernels.sort=-calls");
    await click(header("Calls").querySelector("button"));
    expect(header("Time").querySelector("input")).toBeNull();
    await click(byId("filter-toggle"));
    const filter = header("Time").querySelector("input")!;
    await act(() => {
      filter.value = bound;
      filter.dispatchEvent(new Event("input", { bubbles: true }));
    });
    expect(window.location.hash).toContain("p.tb_dlprof.kernels.sort=calls&p.tb_dlprof.kernels.filter.total_ns=%3E");
    const shown = names();
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.length).toBeLessThan(all.length);
    const link = window.location.hash;
    await act(() => render(null, root));
    await open(link);
    expect(names()).toEqual(shown);
    expect(header("Calls").getAttribute("aria-sort")).toBe("ascending");
    expect(header("Time").querySelector("input")!.value).toBe(bound);
    // The next page has a table of its own, and this one is found as it was left.
    await click(byId("nav-ops"));
    expect([...byId("ops-table")!.querySelectorAll("[aria-sort]")].map((head) => head.textContent)).not.toContain(
      "Calls ▴",
    );
    await click(byId("nav-kernels"));
    expect(names()).toEqual(shown);
  }, 20_000);

  it("Ops takes names for text", async () => {
    await open(hash({ page: "ops", run: "resnet50/fp32" }));
    expect(root.querySelector("img")).toBeNull();
    expect(byId("ops-table")!.textContent).toContain("<img src=x onerror=alert(1)>");
  });

  it("Op types, each of which opens from its row and from the first sentence", async () => {
    const type = fixtures.ops.rows[0]!.op_type;
    await open(hash({ page: "op_types", run: "resnet50/fp32" }), {
      ...ANSWERS,
      op_types: {
        ref: fixtures.ref,
        headline: "conv2d takes 78 % of the GPU time.",
        headline_parts: [
          { text: type, kind: "op_type", id: type },
          { text: " takes 78 % of the GPU time.", kind: "", id: "" },
        ],
        range: fixtures.ops.range,
        has_gpu: true,
        by_type: [{ key: `type:${type}`, label: type, value_ns: 900_000, percent: 100 }],
        rows: [
          {
            op_type: type,
            ops: 3,
            calls: 33,
            kernel_calls: 40,
            gpu_ns: 900_000,
            percent: 100,
            forward_ns: 300_000,
            backward_ns: 600_000,
            rest_ns: 0,
            tc_eligible: "yes",
            eligible_ns: 900_000,
            tc_ns: null,
            utilization_percent: null,
            cpu_total_ns: 10_000,
            cpu_self_ns: 5_000,
          },
        ],
        total_rows: 1,
        coverage: fixtures.ops.coverage,
      },
    });
    expect(byId("op-types-table")!.querySelector("tbody tr")!.textContent).toContain(
      `${type}90.0 µs100 %30.0 µs60.0 µs33.3unknown41.00 µs`,
    );
    await click(byId("op-types-table")!.querySelector("tbody tr"));
    expect(byId("op-type-detail")!.querySelector("h2")!.textContent).toBe(type);
    expect(window.location.hash).toContain(`p.tb_dlprof.type=${encodeURIComponent(type)}`);
    await click(byId("op-types-table")!.querySelector("tbody tr"));
    expect(byId("op-type-detail")).toBeNull();
    await click(byId("headline")!.querySelector("button.link"));
    expect(byId("op-type-detail")!.querySelector("h2")!.textContent).toBe(type);
    await click(byId("op-type-detail")!.querySelector("[data-testid=related-timeline]"));
    expect(window.location.hash).toContain("page=timeline");
    expect(window.location.hash).toContain(`p.tb_dlprof.type=${encodeURIComponent(type)}`);
  });

  it("Kernels with the selected kernel", async () => {
    await open(hash({ page: "kernels", run: "resnet50/fp32", kernel: "k2", columns: "all" }));
    expect(byId("kernels-table")!.querySelectorAll("tbody tr")).toHaveLength(48);
    const precisions = [...byId("kernels-table")!.querySelectorAll("tbody tr")].map((row) => row.textContent);
    expect(precisions.some((text) => text?.includes("no–"))).toBe(true);
    expect(byId("kernel-detail")?.textContent).toContain("warpgroupsize in the name");
  });

  it("Roofline, with what is unknown in words", async () => {
    await open(hash({ page: "roofline", run: "resnet50/fp32", columns: "all" }));
    expect(byId("roofline-chart")!.querySelector(".chart")?.getAttribute("aria-label")).toContain(
      "of 1 ops, under 2 roofs",
    );
    expect(byId("roofline-gpu")?.textContent).toContain("FP32 without Tensor Cores67.0 TFLOP/sMemory4.80 TB/s");
    const rows = [...byId("roofline-table")!.querySelectorAll("tbody tr")];
    expect(rows[0]?.textContent).toContain("47.9 %32.1 TFLOP/s67.0 TFLOP/sfp32, no TCcompute");
    expect(rows[1]?.textContent).toContain("unknown");
    await click(rows[0] as HTMLElement);
    expect(window.location.hash).toContain("p.tb_dlprof.op=conv1f");
  });

  it("Memory shows a failed allocation of the run, with what would have fitted", async () => {
    await open(hash({ page: "memory", run: "resnet50/fp32" }));
    expect(byId("memory-failure")).toBeNull();
    await act(() => render(null, root));
    const failure = filled("OomPage", {
      headline: "Too much is held: a request of 50.0 MiB failed.",
      changes: [{ change: "batches of 21", limit_bytes: 2 ** 31, command: "tb-dlprof plan runs/a --batch-size 21" }],
      rows: [{ kind: "parameters", module: "fc", bytes: 2 ** 20, percent: 1, blocks: 2 }],
    });
    const answer = filled("OomOfRun", { ref: plan.ref, failure });
    await open(hash({ page: "memory", run: "resnet50/fp32" }), { ...ANSWERS, out_of_memory: answer });
    const shown = byId("memory-failure")?.textContent;
    for (const words of ["Too much is held", "batches of 21", "--batch-size 21", "parameters", "2.00 GiB"])
      expect(shown).toContain(words);
  });

  it("What fits: a batch size and a GPU are links to their plan, and the reasons stand below", async () => {
    await open(hash({ page: "plan", run: "resnet50/fp32" }));
    expect(byId("plan-figures")?.textContent).toContain("3.71 GiB");
    expect(byId("plan-notes")?.textContent).toContain("the energy of the GPU was not recorded");
    // A part is asked for once it is opened.
    expect(asked.some((address) => address.searchParams.has("also"))).toBe(false);
    const more = byId("plan-more-batches") as HTMLDetailsElement;
    more.open = true;
    await act(() => void more.dispatchEvent(new Event("toggle")));
    await settle();
    expect(asked[asked.length - 1]?.searchParams.get("also")).toBe("batches");
    const batches = [...byId("plan-batches")!.querySelectorAll("tbody tr")];
    expect(batches[1]?.textContent).toContain("unknown");
    await click(batches[1] as HTMLElement);
    expect(window.location.hash).toContain("p.tb_dlprof.batch=128");
    const last = (name: string) =>
      asked
        .map((address) => address.searchParams.get(name))
        .filter(Boolean)
        .at(-1);
    expect(last("batch_size")).toBe("128");
    await choose("option-gpu", "L4");
    expect(last("gpu")).toBe("L4");
  });

  it("What fits, of a run without memory, says why and shows no figure", async () => {
    const without = { ...plan, figures: [], peak_reserved_mb: null, headline: "Not known: no events." };
    await open(hash({ page: "plan", run: "resnet50/fp32" }), { ...ANSWERS, plan: without });
    expect(root.textContent).toContain("Not known: no events.");
    expect(byId("plan-largest")).toBeNull();
  });

  it("shows the way of a batch with the stage that limits", async () => {
    await open(hash({ page: "loader", run: "resnet50/fp32" }));
    expect(byId("loader-pipeline")?.textContent).toContain("50.0 batches/s");
    expect(byId("loader-pipeline")?.querySelector(".limits")?.textContent).toContain("Read items");
    expect(byId("loader-workers")?.textContent).toContain("advised");
    expect(byId("loader-transforms")?.textContent).toContain("Crop <b>slow</b>");
    expect(byId("loader-hints")?.textContent).toContain("Use 5 workers");
  });

  it("Tried: gains with their intervals, what was not measured, and the patch", async () => {
    await open(hash({ page: "tried", run: "resnet50/fp32" }));
    expect(byId("tried-best")?.textContent).toContain("31.5 %");
    expect(byId("tried-rows")?.textContent).toContain("TF32 <b>products</b>");
    expect(byId("tried-rows")?.textContent).toContain("unknown");
    expect(byId("tried-not")?.textContent).toContain("RuntimeError: no compiler");
    expect(byId("tried-patch")?.textContent).toContain("+++ b/train.py");
    expect(byId("tried-by-hand")?.textContent).toContain("set_float32_matmul_precision");
    expect(byId("tried-notes")?.textContent).toContain("Landlock");
    const without = { ...tried, baseline_ns: null, headline: "No remedy was tried." };
    await open(hash({ page: "tried", run: "resnet50/fp32", rank: "0" }), { ...ANSWERS, tried: without });
    expect(root.textContent).toContain("tb-dlprof try --budget 5m train.py");
  });

  it("Energy: parts, modules, other configurations, and an epoch by the figures of the address", async () => {
    await open(hash({ page: "energy", run: "resnet50/fp32", co2: "380" }));
    expect(byId("energy-step")?.textContent).toContain("18.7 J");
    expect(byId("energy-watts")?.textContent).toContain("568 W");
    expect(byId("energy-notes")?.textContent).toContain("4.20 % below the counter");
    expect(byId("energy-modules")?.textContent).toContain("layer1.<b>0</b>");
    expect(byId("energy-choices")?.textContent).toContain("unknown");
    expect(byId("energy-notes")?.textContent).toContain("it computes in FP16");
    expect(byId("energy-epoch")?.textContent).toContain("9.88 g of CO₂");
    const question = asked.find((url) => url.pathname.endsWith("/energy"));
    expect(question?.searchParams.get("co2_per_kwh")).toBe("380");
  });

  it("Energy, of a run without it, says how to record it", async () => {
    const without = { ...energy, joules_per_step: null, headline: "The energy was not recorded." };
    await open(hash({ page: "energy", run: "resnet50/fp32" }), { ...ANSWERS, energy: without });
    expect(root.textContent).toContain("prof.step()");
    expect(byId("energy-step")).toBeNull();
  });

  it("shows sums per step, or by a click in the header as totals; a place without sums has no switch", async () => {
    await open(hash({ page: "ops", run: "resnet50/fp32" }));
    const time = () => byId("ops-table")!.querySelector("tbody td:nth-child(3)")!.textContent;
    const total = fixtures.ops.rows[0]!.gpu_ns!;
    expect(time()).toBe(formatNs(total / 10));
    await click(byId("unit")!.querySelector("button[aria-pressed=false]"));
    expect(time()).toBe(formatNs(total));
    expect(window.location.hash).toContain("p.tb_dlprof.unit=total");
    await click(byId("place-timeline"));
    expect(byId("unit")).toBeNull();
  });

  it("Tensor Cores", async () => {
    await open(hash({ page: "tensor_cores", run: "resnet50/fp32", columns: "all" }));
    expect(byId("tc-summary")?.textContent).toContain("14.6 %");
    expect(byId("tc-table")?.textContent).toContain("Its inputs are FP32; TF32 is switched off");
    expect(byId("tc-table")?.textContent).toContain("Also: changing layouts 1.20 µs.");
    expect(byId("tc-reasons")?.textContent).toContain("60 ops48.0 ms80.0 %");
    expect(byId("tc-reasons")?.textContent).toContain("Should save 28.8 ms of this kernel time.");
    expect(byId("tc-reasons")?.textContent).toContain("Could save at most 3.10 ms of this kernel time.");
    expect(byId("tc-table")?.querySelector("tbody td:nth-child(4)")?.textContent).toMatch(
      /^[\d.]+ ms and at most 1.20 µs$/,
    );
    expect(byId("tc-ineligible")?.textContent).toContain("A depthwise convolution.");
    expect(byId("tc-kernels")?.textContent).toContain("xmma-ffma");
  });

  it("Memory, of the first GPU and of a device that is chosen", async () => {
    await open(hash({ page: "memory", run: "resnet50/fp32" }));
    expect(asked[asked.length - 1]!.searchParams.get("device")).toBeNull();
    expect(byId("memory-peak")?.dataset["value"]).toBe("2147483648");
    expect(byId("memory-reserved")?.textContent).toBe("unknown");
    expect(byId("memory-categories")?.textContent).toContain("Optimizer stateunknown");
    expect(byId("memory-curve")?.querySelector(".chart")?.getAttribute("aria-label")).toContain(
      "most, 2.00 GiB, in iteration 4",
    );
    const modules = [...byId("memory-modules")!.querySelectorAll("tbody tr td:first-child")].map(
      (cell) => cell.textContent,
    );
    expect(modules).toEqual(["(before the recording)", "layer1.0.conv1", "(no module)", "(outside every op)"]);
    expect(byId("memory-allocations")?.textContent).toContain("not in the recording");
    expect(byId("memory-notes")?.textContent).toContain("Module names");
    await choose("memory-device-picker", "cpu");
    expect(asked[asked.length - 1]!.searchParams.get("device")).toBe("cpu");
    await choose("run-picker", "resnet50/amp");
    expect(asked[asked.length - 1]!.searchParams.get("device")).toBeNull();
  });

  it("Memory narrows to an iteration, and leads to the op of an allocation", async () => {
    await open(hash({ page: "memory", run: "resnet50/fp32" }));
    await click(byId("memory-iterations")!.querySelectorAll("tbody button")[1]!);
    expect(window.location.hash).toContain("p.tb_dlprof.first=1&p.tb_dlprof.last=1");
    // What no op allocated leads nowhere, and does not look as if it did.
    const [ofOp, outside] = [...byId("memory-allocations")!.querySelectorAll("tbody tr")];
    expect([ofOp, outside].map((row) => row!.classList.contains("selectable"))).toEqual([true, false]);
    expect(outside!.querySelector("button")).toBeNull();
    await click(ofOp!.querySelector("button"));
    expect(window.location.hash).toContain("p.tb_dlprof.op=op0");
  });

  it("Memory without addresses shows one curve and says what is unknown", async () => {
    await open(hash({ page: "memory", run: "resnet50/fp32" }), { ...ANSWERS, memory: memoryNotAttributed });
    expect(byId("memory-peak")?.parentElement?.textContent).toContain("above its lowest moment");
    expect(byId("memory-known-before")?.dataset["value"]).toBe(String(5 * 1024 ** 2));
    expect(byId("memory-not-attributed")?.textContent).toContain("unknown: no addresses");
    expect(byId("memory-curve")?.textContent).not.toContain("by category");
    for (const id of ["memory-modules", "memory-op-types", "memory-allocations"]) expect(byId(id)).toBeNull();
    expect(byId("memory-categories")?.querySelector("table, button.link")).toBeNull();
    expect([...byId("memory-iterations")!.querySelectorAll("th")].map((cell) => cell.textContent!.trim())).toHaveLength(
      5,
    );
    expect(byId("memory-iterations")?.textContent).toContain("unknown");
  });

  it("Memory says how to record it where it was not", async () => {
    await open(hash({ page: "memory", run: "resnet50/fp32" }), { ...ANSWERS, memory: memoryNotRecorded });
    expect(byId("headline")?.textContent).toContain("Memory was not recorded");
    expect(root.querySelector(".code")?.textContent).toContain("profile_memory=True");
    expect(byId("memory-peak")).toBeNull();
  });

  it("Advice, with links only to the web and to known pages", async () => {
    await open(hash({ page: "advice", run: "resnet50/fp32" }));
    const card = byId("finding-amp")!;
    await click(card.querySelector('[data-testid="finding-details"]'));
    expect(card.textContent).toContain("between 41.0 ms and 66.0 ms");
    expect([...card.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
      "https://pytorch.org/docs/stable/amp.html",
    ]);
    expect(card.querySelectorAll(".evidence button")).toHaveLength(2);
    expect(byId("rule-memory")?.textContent).toContain("The peak memory was not recorded.");
    expect(byId("rule-amp")).toBeNull();
    await click(card.querySelector(".evidence button"));
    expect(window.location.hash).toContain("p.tb_dlprof.op=op0");
    expect(byId("ops-table")).not.toBeNull();
  });

  it("what mixed precision would gain: the best first, another by a click, and why one is not there", async () => {
    await open(hash({ page: "advice", run: "resnet50/fp32" }));
    expect(byId("forecast-fp16")?.getAttribute("aria-pressed")).toBe("true");
    expect(byId("forecast-fp16")?.textContent).toContain("2.47×");
    expect(byId("forecast-bf16")?.textContent).toContain("no Tensor Cores for BF16");
    expect(byId("forecast-ops")?.textContent).toContain("layer1/conv2d");
    expect(byId("forecast-ops")?.textContent).toContain("−6.50 ms");
    await click(byId("forecast-tf32"));
    expect(window.location.hash).toContain("p.tb_dlprof.precision=tf32");
    expect(byId("forecast-headline")?.textContent).toContain("TF32 forecast: 98 ms");
    expect(byId("forecast-chosen")?.textContent).toContain("allow()");
    await click(byId("forecast-ops")!.querySelector("tbody button"));
    expect(window.location.hash).toContain("p.tb_dlprof.op=op0");
  });

  it("one sentence where there is no forecast at all", async () => {
    const refusal = "the run computed in AMP FP16 (autocast).";
    const choices = fixtures.mixedPrecision.choices.map((choice) => ({ ...choice, refusal, forecast: null }));
    await open(hash({ page: "advice", run: "resnet50/fp32" }), {
      ...ANSWERS,
      advice: { ...fixtures.advice, mixed_precision: { ...fixtures.mixedPrecision, choices } },
    });
    expect(byId("forecast-refusal")?.textContent).toContain(refusal);
    expect(byId("forecast-fp16")).toBeNull();
    expect(asked.some((address) => address.pathname.endsWith("/forecast"))).toBe(false);
  });

  it("Compare of different models, without their ratio", async () => {
    const compare = {
      ...fixtures.compare,
      different_models: true,
      headline: "The runs train different models, A and B.",
    };
    await open(hash({ page: "compare" }), { ...ANSWERS, compare });
    expect(byId("compare-speedup")).toBeNull();
    expect(byId("compare-interval")).toBeNull();
    expect(byId("compare-different-models")?.textContent).toContain("are different models");
  });

  it("Compare without a colour where which run is faster is not known", async () => {
    const compare = { ...fixtures.compare, noise: true, change: "within noise", direction: "Cannot tell." };
    await open(hash({ page: "compare" }), { ...ANSWERS, compare });
    expect(byId("compare-speedup")?.className).toBe("speedup muted");
  });

  it("Compare, fp32 against AMP at first", async () => {
    await open(hash({ page: "compare" }));
    const request = asked.find((address) => address.pathname.endsWith("/compare"))!;
    expect(request.searchParams.get("a.run")).toBe("resnet50/fp32");
    expect(request.searchParams.get("b.run")).toBe("resnet50/amp");
    expect(byId("compare-speedup")?.dataset["value"]).toBe("2.905");
    expect(byId("compare-speedup")?.className).toBe("speedup change-better");
    await openDetails("compare-more");
    expect(byId("metric-samples")?.textContent).toContain("2.90×");
    expect(byId("compare-warnings")?.textContent).toContain("batch sizes");
    expect(byId("compare-warnings")?.textContent).not.toContain("before its recording");
    expect(byId("compare-notes")?.textContent).toContain("before its recording");
    expect(byId("metric-memory")?.textContent).toContain("unknown");
    expect(byId("metric-gpu_utilization")?.textContent).toContain("worse");
    await click(byId("compare-swap"));
    expect(window.location.hash).toContain("p.tb_dlprof.a.run=resnet50%2Famp");
  });
});

describe("the frame", () => {
  it("opens on the pair of full precision and AMP where the address asks for nothing", async () => {
    await open("");
    expect(byId("compare-speedup")).not.toBeNull();
    expect(window.location.hash).toBe(hash({ page: "compare", run: "resnet50/fp32" }));
  });

  it("opens on Summary where there is no such pair", async () => {
    const [first] = fixtures.runs.runs;
    await open("", { ...ANSWERS, runs: { ...fixtures.runs, runs: [first], total: 1 } });
    expect(byId("overview-step-time")).not.toBeNull();
  });

  it("starts with how to record when there is no run", async () => {
    await open(SUMMARY, { runs: { ...fixtures.runs, runs: [], total: 0 } });
    expect(byId("empty-state")?.textContent).toContain("prof.step()");
    expect(byId("empty-state")?.textContent).toContain("make demo");
    expect(asked).toHaveLength(1);
  });

  it("shows the server's sentence in place of a page and keeps the pickers", async () => {
    await open(hash({ run: "gone" }), { ...ANSWERS, overview: { error: "No run 'gone' in runs." } });
    expect(byId("run-error")?.textContent).toContain("No run 'gone' in runs.");
    expect((byId("run-picker") as HTMLSelectElement).value).toBe("gone");
    expect(byId("run-picker")?.querySelectorAll("option")).toHaveLength(4);
  });

  it("hides pickers with a single choice", async () => {
    await open(SUMMARY);
    expect(byId("session-picker")).toBeNull();
    expect(byId("rank-picker")).toBeNull();
    expect(byId("cycle-picker")).toBeNull();
    await choose("run-picker", "vgg16/ddp");
    const chosen = (id: string) => (byId(id) as HTMLSelectElement).selectedOptions[0]?.textContent;
    expect([chosen("session-picker"), chosen("cycle-picker")]).toEqual(["latest (b)", "latest (1)"]);
    await choose("rank-picker", "1");
    expect(chosen("cycle-picker")).toBe("latest (2)");
    expect(window.location.hash).toContain("p.tb_dlprof.rank=1");
  });

  it("keeps page, run and range in the address", async () => {
    await open(SUMMARY);
    await click(byId("place-explore"));
    await click(byId("nav-tensor-cores"));
    expect(window.location.hash).toBe(hash({ page: "tensor_cores", run: "resnet50/fp32" }));
    expect((byId("range-first") as HTMLInputElement).value).toBe("3");
    const last = byId("range-last") as HTMLInputElement;
    await act(() => {
      last.value = "7";
      last.dispatchEvent(new Event("change", { bubbles: true }));
    });
    await settle();
    expect(asked.filter((address) => !address.searchParams.has("offset")).at(-1)!.search).toBe(
      "?run=resnet50%2Ffp32&first=0&last=4",
    );
  });

  it("follows the latest recording, unless one was chosen", async () => {
    const answers = { ...ANSWERS };
    const grow = async (cycles: number[], more: unknown[] = []): Promise<void> => {
      const entries = fixtures.runs.runs.map((entry) => (entry.run === "resnet50/fp32" ? { ...entry, cycles } : entry));
      answers["runs"] = { ...fixtures.runs, runs: [...entries, ...more] };
      await act(() => void document.dispatchEvent(new Event("visibilitychange")));
      await settle();
    };
    await open(SUMMARY, answers);
    const asks = (): number => asked.filter((address) => address.pathname.endsWith("/overview")).length;
    expect(asks()).toBe(1);
    await grow([0]);
    expect([asks(), byId("news")]).toEqual([1, null]);

    await grow([0, 1]);
    expect([asks(), byId("news")?.textContent]).toEqual([
      2,
      expect.stringContaining("Cycle 1 of resnet50/fp32 was recorded; the page follows it."),
    ]);
    await choose("cycle-picker", "0");
    await grow([0, 1, 2], [{ ...fixtures.runs.runs[0]!, run: "resnet50/later" }]);
    expect(window.location.hash).toContain("p.tb_dlprof.session=s1&p.tb_dlprof.cycle=0");
    expect(byId("news")?.textContent).toContain("The one that you chose stays.");
    expect(byId("news-run")?.textContent).toBe("resnet50/later");
    // What comes later does not push it away.
    await grow(
      [0, 1, 2],
      [
        { ...fixtures.runs.runs[0]!, run: "resnet50/later" },
        { ...fixtures.runs.runs[0]!, run: "resnet50/last" },
      ],
    );
    expect(byId("news")?.textContent).toContain("2 new runs, the last: resnet50/last");
    expect(byId("news")?.textContent).toContain("The one that you chose stays.");
    await click(byId("news-follow"));
    expect(window.location.hash).toBe(hash({ run: "resnet50/fp32" }));
    expect(byId("news")).toBeNull();
  });

  it("keeps iterations that were picked when a cycle is added", async () => {
    const answers = { ...ANSWERS };
    await open(hash({ run: "resnet50/fp32", first: "0", last: "1" }), answers);
    answers["runs"] = {
      ...fixtures.runs,
      runs: fixtures.runs.runs.map((entry) => ({ ...entry, cycles: [...entry.cycles, 9] })),
    };
    await act(() => void document.dispatchEvent(new Event("visibilitychange")));
    await settle();
    expect(window.location.hash).toContain("p.tb_dlprof.cycle=0&p.tb_dlprof.first=0&p.tb_dlprof.last=1");
    expect(byId("news-follow")).not.toBeNull();
  });

  it("keeps what it has when the server does not answer, and asks again by a click", async () => {
    await open(SUMMARY);
    vi.stubGlobal("fetch", async () => Promise.reject(new TypeError("gone")));
    await click(byId("refresh"));
    expect(byId("overview-step-time")).not.toBeNull();
    expect(root.textContent).toContain("What is shown below may be old.");
    vi.stubGlobal(
      "fetch",
      async (address: URL) => new Response(JSON.stringify(ANSWERS[address.pathname.split("/").pop()!])),
    );
    for (const button of root.querySelectorAll("[data-testid='retry']")) await click(button);
    expect(byId("run-error")).toBeNull();
  });

  it("asks again after a refresh", async () => {
    await open(SUMMARY);
    const before = asked.length;
    await click(byId("refresh"));
    const again = asked.slice(before).map((url) => url.pathname.split("/").pop());
    expect(again).toEqual(expect.arrayContaining(["runs", "overview"]));
  });
});
