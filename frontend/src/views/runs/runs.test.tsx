import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "../../shell/App";
import * as fixtures from "../../testing/fixtures";
import { byModel, manyRuns, sweep } from "../../testing/runs";
import { colourOf, SERIES } from "../../format/colours";
import { relativeTime } from "./RunBars";
import { groupRuns } from "./runGroups";
import { lineStyles, needsLogarithm, sweepQuery } from "./sweep";

let root: HTMLElement;
let asked: URL[];

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);

async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

async function open(pairs: string, answer: (url: URL) => unknown): Promise<void> {
  window.location.hash = `#tb_dlprof&p.tb_dlprof.page=runs&p.tb_dlprof.run=fp32${pairs}`;
  vi.stubGlobal("fetch", async (address: URL) => {
    asked.push(address);
    const body = address.pathname.endsWith("/runs") ? fixtures.runs : answer(address);
    return new Response(JSON.stringify(body), { status: 200 });
  });
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
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

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  asked = [];
});

afterEach(() => {
  render(null, root);
  root.remove();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  window.location.hash = "";
});

describe("the Runs page", () => {
  it("asks again until all runs are read, and shows how far it is", async () => {
    const first = { ...manyRuns, done: 1, rows: manyRuns.rows.slice(0, 1), total_rows: 1, failed: [] };
    let shown = "";
    await open("", (url) => {
      if (!url.searchParams.has("have")) return first;
      shown = byId("progress")?.textContent ?? "";
      return manyRuns;
    });
    expect(shown).toContain("1 of 3 runs read");
    expect(
      asked.filter((url) => url.pathname.endsWith("many_runs")).map((url) => url.searchParams.get("have")),
    ).toEqual([null, "1"]);
    expect(byId("progress")).toBeNull();
    expect(byId("runs-table")!.querySelectorAll("tbody tr")).toHaveLength(3);
  });

  it("stops asking when the server does not get further", async () => {
    await open("", () => ({ ...manyRuns, done: 2 }));
    expect(asked.filter((url) => url.pathname.endsWith("many_runs"))).toHaveLength(2);
  });

  it("says what is unknown, what has no base, and which runs cannot be read", async () => {
    await open("", () => manyRuns);
    const rows = byId("runs-table")!.querySelectorAll("tbody tr");
    expect(rows[0]!.textContent).toContain("is the base");
    expect(rows[1]!.textContent).toContain("FP32 to AMP BF16");
    expect(rows[2]!.textContent).toContain("unknown");
    expect(rows[2]!.querySelector("[title='its model was not recorded']")).not.toBeNull();
    expect(byId("runs-failed")!.textContent).toContain("cannot be shown");
  });

  it("asks for another base, and opens the comparison of a run with its base", async () => {
    await open("", () => manyRuns);
    await choose("runs-base", "net/amp");
    expect(asked.at(-1)!.searchParams.get("base")).toBe("net/amp");
    const name = [...byId("runs-table")!.querySelectorAll("button.link")].find(
      (button) => button.textContent === "net/amp",
    );
    await act(() => (name as HTMLElement).click());
    expect(decodeURIComponent(window.location.hash)).toContain("p.tb_dlprof.page=compare");
    expect(decodeURIComponent(window.location.hash)).toContain("p.tb_dlprof.a.run=net/fp32");
    expect(decodeURIComponent(window.location.hash)).toContain("p.tb_dlprof.b.run=net/amp");
  });

  it("marks a step that is estimated, and shows the recorded one next to it", async () => {
    await open("", () => manyRuns);
    const rows = byId("runs-table")!.querySelectorAll("tbody tr");
    expect(rows[0]!.textContent).toContain("20.0 ms");
    expect(rows[0]!.textContent).toContain("timed without the profiler");
    expect(rows[0]!.textContent).not.toContain("~");
    expect(rows[1]!.textContent).toContain("~10.0 ms");
    expect(rows[1]!.textContent).toContain("15.0 ms");
    expect(byId("run-bars")!.textContent).toContain("~10.0 ms");
  });

  it("shows each model before and after, with what to do", async () => {
    await open("&p.tb_dlprof.runs=models", () => byModel);
    const cells = [...byId("by-model-table")!.querySelectorAll("tbody td")].map((cell) => cell.textContent);
    expect(cells.slice(0, 8)).toEqual(["Net", "32", "FP32", "AMP BF16", "98.0 %", "unknown", "0 %", "61.5 %"]);
    expect(byId("by-model-next")!.textContent).toContain("Keep AMP BF16");
    expect(byId("by-model-next")!.textContent).toContain("workers 8 to workers 4");
  });

  it("draws what is chosen over the fact that is chosen", async () => {
    await open("&p.tb_dlprof.runs=sweep", (url) =>
      url.searchParams.get("measure") === "share" ? { ...sweep, measure: "share", kernel_group: "convolution" } : sweep,
    );
    expect(byId("sweep-table")!.querySelectorAll("tbody tr")).toHaveLength(3);
    expect(byId("sweep-left-out")!.textContent).toContain("its batch size was not recorded");
    await choose("sweep-measure", "share");
    expect(asked.at(-1)!.searchParams.get("kernel_group")).toBe("convolution");
    await choose("sweep-share", "op:conv2d backward");
    expect(asked.at(-1)!.searchParams.get("op")).toBe("conv2d");
    expect(asked.at(-1)!.searchParams.get("direction")).toBe("backward");
    await choose("sweep-over", "precision");
    expect(asked.at(-1)!.searchParams.get("over")).toBe("precision");
  });
});

describe("the sweep", () => {
  it("asks for a share only where a share is measured", () => {
    expect(sweepQuery({ over: null, measure: null, share: "op:conv2d" })).toEqual({ over: null, measure: null });
    expect(sweepQuery({ over: "gpu", measure: "share", share: "op:Optimizer.step#SGD.step" })).toEqual({
      over: "gpu",
      measure: "share",
      op: "Optimizer.step#SGD.step",
    });
    const backward = { over: null, measure: "share", op: "conv2d", direction: "backward" };
    expect(sweepQuery({ over: null, measure: "share", share: "op:conv2d backward" })).toEqual(backward);
    // As earlier versions wrote it into the address.
    expect(sweepQuery({ over: null, measure: "share", share: "op:conv2d bprop" })).toEqual(backward);
  });

  it("tells thirty lines apart", () => {
    const lines = Array.from({ length: 30 }, () => ({ precision_key: "" }));
    expect(new Set(lineStyles(lines).map((style) => JSON.stringify(style))).size).toBe(30);
  });

  it("gives a precision the colour that it has on All runs, and tells its lines apart by their dashes", () => {
    const styles = lineStyles(["fp32", "bf16", "fp32", ""].map((precision_key) => ({ precision_key })));
    expect(styles.map(({ colour, dash }) => [colour, dash])).toEqual([
      [colourOf("fp32", 0, "ran_in"), "solid"],
      ["var(--c-bf16)", "solid"],
      ["var(--c-fp32)", "dashed"],
      [`var(${SERIES[0]})`, "solid"],
    ]);
  });

  it("takes a logarithmic axis for models whose steps differ by much, never for numbers in order", () => {
    const curves = (...values: number[]) => [
      {
        ...sweep.curves[0]!,
        marks: values.map((value, position) => ({ ...sweep.curves[0]!.marks[0]!, value, position })),
      },
    ];
    expect(needsLogarithm(curves(1.7, 146), false)).toBe(true);
    expect(needsLogarithm(curves(1.7, 146), true)).toBe(false);
    expect(needsLogarithm(curves(80, 146), false)).toBe(false);
    expect(needsLogarithm(curves(0, 146), false)).toBe(false);
  });

  it("counts a base as 1 and a run without one as unknown", () => {
    expect(manyRuns.rows.map(relativeTime)).toEqual([1, 0.5, null]);
  });
});

describe("the bars of the runs", () => {
  const [net] = manyRuns.rows;
  const row = (run: string, model: string, step_ns: number, gpus = 1) => ({
    ...net!,
    ref: { ...net!.ref, run },
    model,
    step_ns,
    gpus,
  });

  it("are grouped by model, the slowest first, each group with its own scale, the CPU's apart", () => {
    const rows = [
      row("here", "Net", 144e6, 0),
      row("b", "MLP", 1.7e6),
      row("c", "Net", 146e6),
      row("u", "", 5e6),
      row("old/v", "", 6e6),
      row("d", "Net", 150e6),
    ];
    expect(
      groupRuns(rows, ({ step_ns }) => step_ns).map(({ title, full, rows: members }) => [
        title,
        full,
        members.map(({ ref }) => ref.run),
      ]),
    ).toEqual([
      ["MLP", 1.7e6, ["b"]],
      ["Net", 150e6, ["d", "c"]],
      ["Model not recorded", 5e6, ["u"]],
      ["old", 6e6, ["old/v"]],
      ["Net, on the CPU", 144e6, ["here"]],
    ]);
  });

  it("put what has no length last, and have no scale where none has one", () => {
    const rows = [row("a", "Net", 1), row("b", "Net", 2)];
    expect(groupRuns(rows, ({ step_ns }) => (step_ns === 1 ? null : 0.5))[0]).toMatchObject({ full: 0.5 });
    expect(groupRuns(rows, () => null)[0]!.full).toBe(0);
  });

  it("say their scale", async () => {
    await open("", () => ({
      ...manyRuns,
      rows: [row("b", "MLP", 1.7e6), row("c", "Net", 146e6), row("d", "Net", 73e6)],
    }));
    const groups = [...byId("run-bars")!.querySelectorAll("[data-testid=model-bars]")];
    expect(groups.map((group) => group.querySelector("h3")!.textContent)).toEqual([
      "MLP full width: 1.70 ms",
      "Net full width: 146 ms",
    ]);
    const widths = [...groups[1]!.querySelectorAll<HTMLElement>(".run-bar")].map(({ style }) => style.width);
    expect(widths).toEqual(["100%", "50%"]);
    expect(byId("run-bars")!.textContent).toContain("relative to the slowest run of the model");
  });
});
