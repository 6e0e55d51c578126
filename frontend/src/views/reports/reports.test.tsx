import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { toCsv } from "../../components/export/formats";
import { App } from "../../shell/App";
import * as fixtures from "../../testing/fixtures";
import { keyNodes, report } from "../../testing/reports";
import { columnsOf, rowsOf } from "./columns";

let root: HTMLElement;
let asked: URL[];

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

const ANSWERS = {
  runs: fixtures.runs,
  overview: fixtures.overview,
  compare: fixtures.compare,
  report,
  key_nodes: keyNodes,
};

async function open(hash: string, answers: Record<string, unknown> = ANSWERS): Promise<void> {
  window.location.hash = hash;
  vi.stubGlobal("fetch", async (address: URL) => {
    asked.push(address);
    const answer = answers[address.pathname.split("/").pop()!] as { error?: string };
    // No more rows come than the first answer holds.
    const body = address.searchParams.has("offset") ? { ...answer, rows: [], ops: [] } : answer;
    return new Response(JSON.stringify(body), { status: body.error ? 404 : 200 });
  });
  await act(() => render(<App base={new URL("http://host/data/plugin/tb_dlprof/")} />, root));
  await settle();
}

const byId = (id: string): HTMLElement | null => root.querySelector(`[data-testid="${id}"]`);
const all = (id: string): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
const lastAsked = (route: string): URLSearchParams =>
  asked.filter((address) => address.pathname.endsWith(`/${route}`)).at(-1)!.searchParams;

async function click(element: Element | null | undefined): Promise<void> {
  await act(() => (element as HTMLElement).click());
  await settle();
}

async function unfold(id: string): Promise<void> {
  await act(() => {
    const box = byId(id) as HTMLDetailsElement;
    box.open = true;
    box.dispatchEvent(new Event("toggle"));
  });
  await settle();
}

async function search(text: string): Promise<HTMLInputElement> {
  const input = byId("key-node-search") as HTMLInputElement;
  await act(() => {
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await settle();
  return input;
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
  window.location.hash = "";
});

const RUN = "p.tb_dlprof.run=resnet50%2Ffp32";

describe("the Reports page", () => {
  it("shows a report with its question, its notes and what was left out", async () => {
    await open(`#tb_dlprof&p.tb_dlprof.page=reports&${RUN}&p.tb_dlprof.report=kernel`);
    expect(lastAsked("report").get("name")).toBe("kernel");
    expect(byId("headline")?.textContent).toBe(report.headline);
    expect(byId("report-notes")?.textContent).toContain("does not record them");
    expect(byId("report-notes")?.textContent).toContain(
      'the first 4 of 7,080 rows, the rest did not arrive: press Refresh, pick fewer iterations, or let "tb-dlprof report --reports kernel"',
    );
    const rows = [...byId("report-table")!.querySelectorAll("tbody tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.textContent),
    );
    expect(rows[0]).toEqual(["gemm", "yes", "5.00 ms", "38.0 %", "–"]);
    expect(rows[1]).toEqual(["<img src=x onerror=alert(1)>", "unknown", "1.00 µs", "–", "2.00 KiB"]);
    expect(root.querySelector("img")).toBeNull();
  });

  it("leads to every other report and keeps it in the address", async () => {
    await open(`#tb_dlprof&p.tb_dlprof.page=reports&${RUN}`);
    expect(lastAsked("report").get("name")).toBe("averages");
    await click(byId("report-kernel"));
    expect(window.location.hash).toContain("p.tb_dlprof.report=kernel");
    expect(lastAsked("report").get("name")).toBe("kernel");
    expect(byId("report-kernel")?.getAttribute("aria-current")).toBe("true");
  });

  it("sorts unknown last and offers the verdicts that occur", async () => {
    await open(`#tb_dlprof&p.tb_dlprof.page=reports&${RUN}`);
    const head = (name: string) =>
      [...byId("report-table")!.querySelectorAll("th")].find((cell) => cell.textContent?.startsWith(name))!;
    await click(head("Occupancy").querySelector("button"));
    const first = () =>
      [...byId("report-table")!.querySelectorAll("tbody tr")].map((row) => row.querySelector("td")?.textContent);
    expect(first().at(-1)).toBe("<img src=x onerror=alert(1)>");
    await click(byId("filter-toggle"));
    expect([...head("Uses TC").querySelectorAll("option")].map((option) => option.value)).toEqual([
      "",
      "no",
      "yes",
      "unknown",
    ]);
  });

  it("exports exact numbers under the report's own headings", () => {
    const csv = toCsv(columnsOf(report), rowsOf(report)).split("\r\n");
    expect(csv[0]).toBe("Kernel Name,Uses TC,Total GPU Time (ns),Occupancy (%),Copied or Set (bytes)");
    expect(csv[1]).toBe("gemm,yes,5000000,38,");
    expect(csv[4]).toBe("'=1+1,no,3000000,50,");
  });
});

describe("a key node", () => {
  it("is asked for only when the choice is opened, picked by name, and sent with every query", async () => {
    await open(`#tb_dlprof&${RUN}&p.tb_dlprof.first=1&p.tb_dlprof.last=3`);
    expect(byId("key-node-summary")?.textContent).toContain("prof.step()");
    expect(asked.some((address) => address.pathname.endsWith("/key_nodes"))).toBe(false);
    await unfold("key-node");
    // What could be one does not depend on what is chosen.
    expect(String(lastAsked("key_nodes"))).toBe("run=resnet50%2Ffp32");
    expect(all("key-node-choice").map((one) => one.textContent)).toEqual([
      "div_10 calls",
      "conv1/conv2dforward, 10 calls",
      "conv1/conv2dbackward, 1 call",
    ]);
    await click(all("key-node-choice")[1]);
    expect(lastAsked("overview").get("key_node")).toBe("conv1/conv2d");
    // Indices of other iterations mean nothing any more.
    expect(lastAsked("overview").has("first")).toBe(false);
    expect(window.location.hash).toContain("p.tb_dlprof.keyNode=conv1%2Fconv2d");
    await click(byId("export"));
    await click(byId("take-kernel"));
    expect(lastAsked("report").get("key_node")).toBe("conv1/conv2d");
  });

  it("is found by words, or taken as it was typed", async () => {
    await open(`#tb_dlprof&${RUN}`);
    await unfold("key-node");
    // DLProf's word for it finds it as well.
    for (const word of ["backward", "bprop"]) {
      await search(`conv ${word}`);
      expect(all("key-node-choice").map((one) => one.title)).toEqual(["cccc"]);
    }
    const input = await search(" Optimizer.step#SGD.step ");
    expect(all("key-node-choice")).toHaveLength(0);
    await act(() => {
      input.form!.requestSubmit();
    });
    await settle();
    expect(lastAsked("overview").get("key_node")).toBe("Optimizer.step#SGD.step");
  });

  it("is left behind with another run", async () => {
    await open(`#tb_dlprof&${RUN}&p.tb_dlprof.keyNode=div_`);
    expect(lastAsked("overview").get("key_node")).toBe("div_");
    const picker = byId("run-picker") as HTMLSelectElement;
    await act(() => {
      picker.value = "resnet50/amp";
      picker.dispatchEvent(new Event("change", { bubbles: true }));
    });
    await settle();
    expect(String(lastAsked("overview"))).toBe("run=resnet50%2Famp");
  });

  it("goes back to the recorded steps", async () => {
    await open(`#tb_dlprof&${RUN}&p.tb_dlprof.keyNode=div_`);
    expect(byId("key-node-summary")?.textContent).toContain("div_");
    await unfold("key-node");
    expect(all("key-node-choice")[0]?.getAttribute("aria-pressed")).toBe("true");
    await click(byId("key-node-recorded"));
    expect(lastAsked("overview").has("key_node")).toBe(false);
    expect(window.location.hash).not.toContain("keyNode");
  });

  it("that a run lacks is an error with a way back", async () => {
    await open(`#tb_dlprof&${RUN}&p.tb_dlprof.keyNode=gone`, {
      ...ANSWERS,
      overview: { error: "Run 'x': there is no op named 'gone'." },
    });
    expect(byId("run-error")?.textContent).toContain("no op named 'gone'");
    await click(byId("key-node-back"));
    expect(window.location.hash).not.toContain("keyNode");
    expect(byId("key-node-back")).toBeNull();
  });

  it("is offered at once where nothing marks the steps", async () => {
    const range = { first: 0, last: 0, total: 1, first_number: 0, last_number: 0, found_by: "none" };
    await open(`#tb_dlprof&${RUN}`, {
      ...ANSWERS,
      overview: { ...fixtures.overview, range },
      key_nodes: { ...keyNodes, found_by: "none", iterations: 0 },
    });
    expect(byId("no-steps")?.textContent).toContain("Nothing marks the steps");
    expect(all("no-steps-choice")).toHaveLength(3);
    await click(all("no-steps-choice")[0]);
    expect(lastAsked("overview").get("key_node")).toBe("div_");
  });

  it("is each side's own on the Compare page", async () => {
    await open("#tb_dlprof&p.tb_dlprof.page=compare");
    await unfold("compare-candidate-key-node");
    expect(lastAsked("key_nodes").get("run")).toBe("resnet50/amp");
    await click(all("compare-candidate-key-node-choice")[0]);
    expect(lastAsked("compare").get("b.key_node")).toBe("div_");
    expect(lastAsked("compare").has("a.key_node")).toBe(false);
  });
});
