import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEntry } from "../../api/types";
import { ProfilePicker } from "./ProfilePicker";
import { NO_PROFILE } from "../../state/profile";
import { rankItems, slowestRank } from "./ranks";
import { runItems, runLines } from "./runList";
import { filled } from "../../testing/filled";

const entry = (run: string, more: Partial<RunEntry> = {}) =>
  filled("RunEntry", {
    run,
    session: "s",
    rank: 0,
    cycles: [0],
    model: "ResNet50",
    precision: "fp32",
    device: "H200",
    created_unix_ns: 1,
    iterations: 10,
    recorded_iteration_ns: 1_000_000,
    ...more,
  });

const many = Array.from({ length: 500 }, (_, index) =>
  entry(`sweep${Math.floor(index / 20)}/lr${index % 20}`, {
    precision: index % 2 ? "bf16" : "fp32",
    created_unix_ns: index === 123 ? 9_999 : index,
  }),
);

describe("the list of runs", () => {
  it("groups by the first directory in natural order, and marks the newest", () => {
    const lines = runLines(runItems(many), "");
    expect(lines).toHaveLength(525);
    expect(lines[0]).toEqual({ kind: "group", label: "sweep0", runs: 20 });
    expect(lines.flatMap((line) => (line.kind === "group" ? [line.label] : [])).slice(1, 4)).toEqual([
      "sweep1",
      "sweep2",
      "sweep3",
    ]);
    expect(lines.flatMap((line) => (line.kind === "run" && line.item.newest ? [line.item.run] : []))).toEqual([
      "sweep6/lr3",
    ]);
  });

  it("groups by model where directories do not tell, and not at all where nothing does", () => {
    const models = ["a", "b", "c", "d"].map((run, index) => entry(run, { model: index < 2 ? "VGG" : "MLP" }));
    expect(runLines(runItems(models), "").map((line) => (line.kind === "group" ? line.label : line.item.name))).toEqual(
      ["VGG", "a", "b", "MLP", "c", "d"],
    );
    expect(runLines(runItems(["a", "b"].map((run) => entry(run))), "").map(({ kind }) => kind)).toEqual(["run", "run"]);
  });

  it("is searched by name, model and precision, the best names first", () => {
    const found = runLines(runItems(many), "lr1 bf16").flatMap((line) => (line.kind === "run" ? [line.item] : []));
    expect(found[0]?.name).toBe("lr1");
    expect(found.every(({ precision }) => precision === "bf16")).toBe(true);
    expect(runLines(runItems(many), "nothing like it")).toEqual([]);
  });

  it("takes what a run of several ranks says from its lowest rank", () => {
    const ranks = [1, 0, 2].map((rank) => entry("ddp", { rank, recorded_iteration_ns: 10 + rank }));
    expect(runItems(ranks)[0]).toMatchObject({ ranks: 3, stepNs: 10 });
  });
});

it("the slowest rank is one that stands out, and unknown where a step is", () => {
  const ranks = (steps: (number | null)[]) =>
    rankItems(
      steps.map((step, rank) => entry("ddp", { rank, recorded_iteration_ns: step })),
      "ddp",
      "s",
    );
  expect(slowestRank(ranks([100, 100, 131, 100]))).toEqual({ rank: 2, percent: expect.closeTo(31) });
  expect(slowestRank(ranks([1000, 1001, 1002]))).toBeNull();
  expect(slowestRank(ranks([100, null, 200]))).toBeNull();
});

describe("the picker", () => {
  let root: HTMLElement;
  beforeEach(() => {
    root = document.createElement("div");
    document.body.append(root);
    vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(430);
  });
  afterEach(() => {
    render(null, root);
    root.remove();
  });
  const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);
  const draw = (entries: RunEntry[], run: string, onChange = vi.fn()) => {
    act(() =>
      render(<ProfilePicker entries={entries} choice={{ ...NO_PROFILE, run }} label="Run" onChange={onChange} />, root),
    );
    return onChange;
  };
  const key = (element: Element | null, name: string) =>
    act(() => void element!.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true })));

  it("of a few runs is a select", () => {
    draw(many.slice(0, 12), "sweep0/lr0");
    expect(byId("run-picker")?.tagName).toBe("SELECT");
  });

  it("of many runs draws those in sight, moves by keys and gives the focus back", async () => {
    const onChange = draw(many, "sweep0/lr0");
    await act(() => byId("run-picker")!.click());
    expect(root.querySelectorAll("[data-testid='run-picker-option']").length).toBeLessThan(80);
    const search = byId("run-picker-search") as HTMLInputElement;
    expect(document.activeElement).toBe(search);
    key(search, "ArrowDown");
    expect(root.querySelector("[aria-selected='true']")?.textContent).toContain("lr1");
    await act(() => void search.form!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
    expect(onChange).toHaveBeenCalledWith({ ...NO_PROFILE, run: "sweep0/lr1" });
    expect([byId("run-picker-search"), document.activeElement]).toEqual([null, byId("run-picker")]);
    await act(() => byId("run-picker")!.click());
    key(byId("run-picker-search"), "Escape");
    expect([byId("run-picker-search"), document.activeElement]).toEqual([null, byId("run-picker")]);
  });

  it("of many ranks is a grid of eight columns, in which arrows, Home and End move", async () => {
    draw(
      Array.from({ length: 64 }, (_, rank) => entry("ddp", { rank })),
      "ddp",
    );
    await act(() => byId("rank-picker")!.click());
    const moves = ["End", "ArrowUp", "ArrowLeft", "Home", "ArrowLeft", "ArrowDown", "ArrowRight", "0"];
    const ranks = moves.map((name) => {
      key(document.activeElement, name);
      return Number(document.activeElement?.textContent);
    });
    expect(ranks).toEqual([63, 55, 54, 0, 0, 8, 9, 0]);
  });

  it("of many ranks is a grid, in which digits go to a rank", async () => {
    const ranks = Array.from({ length: 64 }, (_, rank) =>
      entry("ddp", { rank, recorded_iteration_ns: rank === 37 ? 1_500_000 : 1_000_000 }),
    );
    const onChange = draw(ranks, "ddp");
    await act(() => byId("rank-picker")!.click());
    expect(root.querySelectorAll("[data-testid='rank-picker-option']")).toHaveLength(64);
    for (const digit of "37") key(document.activeElement, digit);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Rank 37, 1.50 ms a recorded step, the slowest");
    await act(() => (document.activeElement as HTMLElement).click());
    expect(onChange).toHaveBeenCalledWith({ ...NO_PROFILE, run: "ddp", rank: 37 });
  });
});
