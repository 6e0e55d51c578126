import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RooflinePage as RooflineData } from "../../api/types";
import { App } from "../../shell/App";
import * as fixtures from "../../testing/fixtures";
import { roofline } from "../../testing/roofline";

let root: HTMLElement;

async function open(data: RooflineData): Promise<void> {
  const answers: Record<string, unknown> = { runs: fixtures.runs, roofline: data };
  window.location.hash = `#tb_dlprof&p.tb_dlprof.page=roofline&p.tb_dlprof.run=${encodeURIComponent("resnet50/fp32")}`;
  vi.stubGlobal(
    "fetch",
    async (address: URL) => new Response(JSON.stringify(answers[address.pathname.split("/").pop()!])),
  );
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);

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

describe("the Roofline page", () => {
  it("names the roofs with short rates", async () => {
    await open(roofline);
    const gpu = byId("roofline-gpu")!.textContent;
    for (const text of ["FP16 and BF16990 TFLOP/s", "FP32 without Tensor Cores67.0 TFLOP/s", "Memory4.80 TB/s"])
      expect(gpu).toContain(text);
    expect(byId("roofline-above")).toBeNull();
  });

  it("says below the chart why ops are above their roof", async () => {
    const [op] = roofline.ops;
    const why_above_roof = "FFT kernels multiply less often than the FLOPs say";
    await open({ ...roofline, ops: [{ ...op!, percent_of_ceiling: 130, why_above_roof }] });
    expect(byId("roofline-above")!.textContent).toContain(`Above the roof, 1 op: ${why_above_roof}.`);
  });

  it("has a sentence in place of rates that are unknown", async () => {
    await open({
      ...roofline,
      gpu: "NVIDIA Unheard",
      roofs: [],
      bytes_per_second: null,
      source: "",
      percent_of_ceiling: null,
      unknown_percent: 0,
    });
    expect(byId("roofline-gpu")!.textContent).toContain("The peak rates of NVIDIA Unheard are unknown");
    expect(byId("roofline-summary")!.textContent).not.toContain("unknown");
  });

  it("is one line without a GPU", async () => {
    await open({ ...roofline, has_gpu: false, gpu: "", roofs: [], bytes_per_second: null, ops: [], matrix_ns: null });
    expect(root.textContent).toContain("No GPU in this recording, so there is no rate to compare with a roof.");
    expect(byId("roofline-summary")).toBeNull();
    expect(root.textContent).not.toContain("unknown");
  });
});
