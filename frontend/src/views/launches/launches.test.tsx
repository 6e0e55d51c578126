import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Category, LaunchesPage as LaunchesData } from "../../api/types";
import { App } from "../../shell/App";
import * as fixtures from "../../testing/fixtures";
import { filled, filledAll } from "../../testing/filled";

const CAUSES = ["dataloader", "cpu_launch", "python", "idle"] as const;
const categories = (keys: readonly string[]): Category[] =>
  filledAll(
    "Category",
    keys.map((key) => ({ key, label: `label of ${key}`, definition: `definition of ${key}`, recorded: true })),
  );

const page = filled("LaunchesPage", {
  ref: fixtures.kernels.ref,
  headline: "The CPU sets the pace; the GPU waits for it 40 % of the 800 µs step.",
  headline_parts: [{ text: "The CPU sets the pace; the GPU waits for it 40 % of the 800 µs step.", kind: "", id: "" }],
  step: { ms: 0.8, low_ms: 0.7, high_ms: 0.9, source: "simulated", recorded_ms: 1 },
  step_words: "estimated; 1.00 ms while recorded",
  range: fixtures.kernels.range,
  has_gpu: true,
  gpus: [0],
  figures: {
    idle_percent: 40,
    slack_percent: 3,
    launches: 12,
    timed: 10,
    median_delay_ns: 2_300,
    mean_delay_ns: 4_000,
    max_delay_ns: 90_000,
    mean_queue: 1.5,
    max_queue: 5,
    short_percent: 50,
    started_early: 2,
    clock_disagrees: 0,
    sync_calls_per_iteration: 1,
    sync_ns_per_iteration: 120_000,
  },
  bar_categories: categories(["busy", ...CAUSES]),
  causes: [...CAUSES],
  idle_by_cause: CAUSES.map((key) => ({
    key,
    label: `label of ${key}`,
    value_ns: { python: 300_000, cpu_launch: 100_000, dataloader: 0, idle: 0 }[key],
    percent: { python: 75, cpu_launch: 25, dataloader: 0, idle: 0 }[key],
  })),
  idle_by_activity: [
    { key: "copying", cause: "cpu_launch", label: "Copying", value_ns: 40_000, percent: 10 },
    { key: "ops", cause: "cpu_launch", label: "Other ops and CUDA calls", value_ns: 60_000, percent: 15 },
    { key: "python", cause: "python", label: "Python", value_ns: 300_000, percent: 75 },
  ],
  idle_by_kind: [{ key: "host_wait", label: "Launched late", value_ns: 400_000, percent: 100 }],
  gap_kinds: categories(["host_wait", "kernel_wait", "other", "unknown"]),
  bars: [
    {
      index: 0,
      last: 0,
      number: 3,
      last_number: 3,
      start_ns: 0,
      duration_ns: 1_000_000,
      shortest_ns: 1_000_000,
      longest_ns: 1_000_000,
      category_ns: [600_000, 0, 0, 400_000, 0],
      selected: true,
    },
  ],
  bars_note: "",
  iterations: [
    {
      index: 0,
      number: 3,
      gpu: 0,
      pace: "cpu",
      duration_ns: 1_000_000,
      busy_ns: 600_000,
      idle_ns: 400_000,
      idle_percent: 40,
      late_percent: null,
      slack_percent: 3,
      idle_by_cause_ns: [0, 0, 400_000, 0],
      gaps: 2,
      longest_gap_ns: 300_000,
    },
  ],
  total_iterations: 1,
  kernels: [
    {
      id: "k1",
      name: "void gemm<int>()",
      short_name: "gemm",
      kind: "kernel",
      calls: 12,
      average_ns: 5_000,
      mean_delay_ns: null,
      max_delay_ns: null,
      mean_queue: null,
      max_queue: null,
      mean_call_ns: null,
      short_percent: null,
    },
  ],
  total_kernels: 1,
  syncs: [
    {
      call: "cudaStreamSynchronize",
      kind: "wait",
      op: "item",
      op_id: "op9",
      inner_op: "aten::_local_scalar_dense",
      module: "",
      role: "other",
      calls: 1,
      calls_per_iteration: 1,
      time_ns: 120_000,
      ns_per_iteration: 120_000,
      average_ns: 120_000,
      max_ns: 120_000,
      percent: 12,
    },
  ],
  total_syncs: 1,
  gaps: [
    {
      index: 0,
      number: 3,
      gpu: 0,
      start_ns: 10_000,
      duration_ns: 300_000,
      percent: 30,
      kind: "host_wait",
      cause: "python",
      cause_ns: [0, 0, 300_000, 0],
      kernel: "gemm",
      kernel_id: "k1",
      op: "fc/linear",
      op_id: "op1",
      module: "fc",
      event: "i7",
    },
    {
      index: 0,
      number: 3,
      gpu: 0,
      start_ns: 900_000,
      duration_ns: 100_000,
      percent: 10,
      kind: "host_wait",
      cause: "python",
      cause_ns: [0, 0, 100_000, 0],
      kernel: "",
      kernel_id: "",
      op: "",
      op_id: "",
      module: "",
      event: "i8",
    },
  ],
  total_gaps: 9,
});

let root: HTMLElement;

async function open(data: LaunchesData): Promise<void> {
  const answers: Record<string, unknown> = { runs: fixtures.runs, launches: data, kernels: fixtures.kernels };
  window.location.hash = `#tb_dlprof&p.tb_dlprof.page=launches&p.tb_dlprof.run=${encodeURIComponent("resnet50/fp32")}`;
  vi.stubGlobal(
    "fetch",
    async (address: URL) => new Response(JSON.stringify(answers[address.pathname.split("/").pop()!])),
  );
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);
const rows = (id: string): string[] => [...byId(id)!.querySelectorAll("tbody tr")].map((row) => row.textContent ?? "");

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1000);
});

afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("the Launches page", () => {
  it("says what sets the pace, shows unknown as unknown and what the CPU did in each gap", async () => {
    await open(page);
    expect(byId("headline")!.textContent).toBe(page.headline);
    expect(byId("launches-step-time")!.dataset["value"]).toBe("800000");
    expect(byId("launches-step-time")!.parentElement!.textContent).toContain("estimated; 1.00 ms while recorded");
    expect(rows("launches-pace")[0]).toContain("unknown");
    expect(rows("launches-gaps")).toEqual([
      expect.stringMatching(/^gemm300 µs30\.0 %310\.0 µslabel of python.*label of host_waitfc\/linear$/),
      expect.stringContaining("end of the iteration"),
    ]);
    expect(byId("launches-gaps")!.textContent).toContain("2 rows, the first of 9");
    expect(rows("launches-kernels")[0]).toContain("unknown");
    expect(rows("launches-syncs-table")[0]).toContain("cudaStreamSynchronize");
    expect(root.textContent).toContain("The launch call of 2 of 12 kernels, copies and sets is not known");
  });

  it("has the words and colours of the account of a step, and what the CPU does in detail", async () => {
    await open(page);
    const card = byId("launches-causes")!;
    expect(card.textContent).toContain(
      "In detail, label of cpu_launch: copying 10.0 %, other ops and CUDA calls 15.0 %.",
    );
    const bar = [...card.querySelectorAll<HTMLElement>(".stacked-bar span")].map(({ style }) => style.background);
    expect(bar).toEqual(["var(--c-cpu)", "var(--c-python)"]);
    const [cell] = byId("launches-gaps")!.querySelectorAll<HTMLElement>(".gap-bar .stacked-bar span");
    expect(cell!.style.background).toBe("var(--c-python)");
  });

  it("leads from a gap to it on the timeline", async () => {
    await open(page);
    await act(() => byId("launches-gaps")!.querySelector<HTMLElement>("tbody tr")!.click());
    expect(window.location.hash).toContain("p.tb_dlprof.page=timeline");
    expect(window.location.hash).toContain("p.tb_dlprof.iteration=0&p.tb_dlprof.event=i7");
  });

  it("is one sentence where there is no GPU", async () => {
    const headline = "There is no GPU in this recording, so there are no launches and no idle times.";
    await open({ ...page, headline, has_gpu: false, gpus: [], bars: [], iterations: [], gaps: [], kernels: [] });
    expect(byId("headline")!.textContent).toBe(headline);
    expect(root.querySelectorAll(".card, .message")).toHaveLength(0);
    expect(byId("launches-gaps")).toBeNull();
  });
});
