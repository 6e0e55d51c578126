import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Client } from "../../api/client";
import { ConnectionContext } from "../../api/useResource";
import type { ModulesPage as ModulesData, OpsPage as OpsData } from "../../api/types";
import { columnsParam, moduleParam, pageParam } from "../../state/sharedParams";
import { connectAddress } from "../../state/address";
import { ALL_PARAMS } from "../../shell/routes";
import { ops } from "../../testing/fixtures";
import { modules, noModules } from "../../testing/modules";
import { OpsPage } from "../ops/OpsPage";
import { ModulesPage } from "./ModulesPage";

/** Nothing is asked for but what belongs to a module, of which the rows themselves tell. */
const connection = { client: new Client({ answer: () => new Promise(() => {}), file: null }), generation: 0 };

let root: HTMLElement;
let disconnect: () => void;

async function draw(data: ModulesData, opsData: OpsData = ops): Promise<void> {
  const Shown = () => (pageParam.value === "ops" ? <OpsPage data={opsData} /> : <ModulesPage data={data} />);
  await act(() =>
    render(
      <ConnectionContext.Provider value={connection}>
        <Shown />
      </ConnectionContext.Provider>,
      root,
    ),
  );
}

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);
const cells = (): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(".icicle-cell")];
const names = (): (string | null)[] =>
  [...root.querySelectorAll("tbody td:first-child .link")].map((cell) => cell.textContent);
const click = (element: Element | null | undefined): Promise<void> => act(() => (element as HTMLElement).click());
const buttonOf = (text: string): Element | undefined =>
  [...root.querySelectorAll("button")].find((button) => button.textContent?.trim() === text);

beforeEach(() => {
  window.location.hash = "";
  root = document.createElement("div");
  document.body.append(root);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1000);
  disconnect = connectAddress(ALL_PARAMS);
});

afterEach(() => {
  render(null, root);
  root.remove();
  disconnect();
  vi.restoreAllMocks();
});

describe("the Modules page", () => {
  it("draws the tree twice, with what lies outside in the table", async () => {
    await draw(modules);
    expect(cells().map((cell) => cell.getAttribute("aria-label"))).toEqual([
      "ResNet50, 96.0 ms",
      "stem, 26.0 ms",
      "layer1, 70.0 ms",
      "layer1.0, 40.0 ms",
      "=HYPERLINK(1), 20.0 ms",
      "2 modules too small to draw, 10.0 ms together",
    ]);
    expect(names()).toEqual([
      "ResNet50",
      "layer1 (2 left out)",
      "layer1.0",
      "=HYPERLINK(1)",
      "stem",
      "outside modules: optimizer",
    ]);
    expect(byId("modules-left-out")?.textContent).toContain("3 modules");
  });

  it("tells no eligible work from unknown use", async () => {
    columnsParam.value = "tensor_cores";
    await draw(modules);
    const column = [...root.querySelectorAll("thead th")].findIndex((head) =>
      head.textContent?.startsWith("TC utilization"),
    );
    const texts = [...root.querySelectorAll("tbody tr")].map((row) => row.children[column]!.textContent);
    expect(texts).toEqual(["50.0 %", "50.0 %", "50.0 %", "unknown", "–", "–"]);
  });

  it("selects the module that its first sentence names", async () => {
    await draw(modules);
    const headline = byId("headline")!;
    expect(headline.textContent).toBe(modules.headline);
    await click(headline.querySelector("button.link"));
    expect(moduleParam.value).toBe("layer1");
    expect(byId("module-detail")).not.toBeNull();
  });

  it("zooms to a clicked module, selects it in the table and leads back", async () => {
    await draw(modules);
    await click(cells()[2]);
    expect(window.location.hash).toContain("p.tb_dlprof.module=layer1");
    expect(cells().map((cell) => cell.textContent)).toEqual(["layer1", "layer1.0", "=HYPERLINK(1)", "…"]);
    expect(root.querySelector("tr.selected")?.textContent).toContain("layer1");
    expect(byId("module-detail")?.querySelector("h2")?.textContent).toBe("layer1");
    await click(byId("modules-path")?.querySelector("button"));
    expect(cells()).toHaveLength(6);
  });

  it("shows a leaf within the module that holds it", async () => {
    moduleParam.value = "layer1.0";
    await draw(modules);
    expect(cells()[0]?.textContent).toBe("layer1");
    expect(root.querySelector('[aria-selected="true"]')?.textContent).toBe("layer1.0");
    expect(root.querySelector("tr.selected")?.textContent).toContain("40.0 ms");
  });

  it("is walked and zoomed out of with the keyboard", async () => {
    moduleParam.value = "layer1";
    await draw(modules);
    const press = (key: string): Promise<void> =>
      act(
        () => void (document.activeElement ?? root).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })),
      );
    await act(() => cells()[0]!.focus());
    await press("ArrowDown");
    expect(document.activeElement?.textContent).toBe("layer1.0");
    await press("ArrowRight");
    expect(document.activeElement?.textContent).toBe("=HYPERLINK(1)");
    await press("ArrowUp");
    expect(document.activeElement?.textContent).toBe("layer1");
    await press("ArrowUp");
    expect(moduleParam.value).toBe(".");
    expect(root.querySelectorAll('.icicle-cell[tabindex="0"]')).toHaveLength(1);
  });

  it("sizes by the time that is chosen", async () => {
    await draw({
      ...modules,
      rows: modules.rows.map((row) => (row.path === "stem" ? { ...row, gpu_backward_ns: 0 } : row)),
    });
    await click(buttonOf("Backward"));
    expect(cells().map((cell) => cell.textContent)).not.toContain("stem");
    await click(buttonOf("CPU time"));
    expect(cells()[0]?.getAttribute("aria-label")).toBe("ResNet50, 200 µs");
  });

  it("folds and unfolds", async () => {
    await draw(modules);
    await click(buttonOf("Collapse"));
    expect(names()).toEqual(["ResNet50", "layer1 (2 left out)", "stem", "outside modules: optimizer"]);
    await click(root.querySelector('[aria-label="Show what is in layer1"]'));
    expect(names()).toHaveLength(6);
    expect(moduleParam.value).toBeNull();
  });

  it("leads to the ops of a module, and from there to all ops", async () => {
    moduleParam.value = "layer1";
    await draw(modules, { ...ops, rows: ops.rows.slice(0, 8) });
    await click(byId("module-ops"));
    expect(pageParam.value).toBe("ops");
    const held = ops.rows.slice(0, 8).filter((row) => row.module.startsWith("layer1.")).length;
    expect(held).toBeGreaterThan(0);
    expect(byId("page-filter")?.textContent).toContain(`${held} of 8 ops`);
    expect(root.querySelectorAll("tbody tr")).toHaveLength(held);
    await click(byId("page-filter-clear"));
    expect(root.querySelectorAll("tbody tr")).toHaveLength(8);
  });

  it("says how to record modules where there are none", async () => {
    await draw(noModules);
    expect(byId("no-modules")?.textContent).toContain("model=model");
    expect(byId("modules-table")).toBeNull();
  });

  it("says that paths came from Python stacks", async () => {
    await draw({ ...modules, from_stacks: true });
    expect(root.textContent).toContain("read from Python stacks");
  });

  it("leaves GPU figures out of a recording without one", async () => {
    const cpu = modules.rows.map((row) => ({
      ...row,
      gpu_ns: null,
      gpu_percent: null,
      eligible_ns: null,
      utilization_percent: null,
    }));
    await draw({ ...modules, has_gpu: false, rows: cpu });
    expect(root.querySelector("thead")?.textContent).not.toContain("GPU");
    expect(buttonOf("GPU time")).toBeUndefined();
    expect(root.textContent).toContain("Width: CPU time");
    expect(root.textContent).not.toContain("Eligible time on Tensor Cores");
  });
});
