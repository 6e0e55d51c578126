import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { report } from "../testing/reports";
import { Client } from "./client";
import { ConnectionContext } from "./useResource";
import { useWhole } from "./useWhole";

const TOTAL = 10;
const ROWS = Array.from({ length: TOTAL }, (_, at) => [`kernel ${at}`]);

/** Renders a page of `size` rows an answer and says after each change how many are there. */
async function joined(size: number, failAt = Infinity): Promise<{ seen: string[]; asked: string[] }> {
  const asked: string[] = [];
  const seen: string[] = [];
  vi.stubGlobal("fetch", async (address: URL) => {
    const offset = Number(address.searchParams.get("offset") ?? 0);
    asked.push(address.search);
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (offset >= failAt) return new Response(JSON.stringify({ error: "gone" }), { status: 500 });
    return new Response(JSON.stringify({ ...report, rows: ROWS.slice(offset, offset + size), total_rows: TOTAL }));
  });
  const connection = { client: new Client(new URL("http://host/data/")), generation: 0 };
  function Probe() {
    const { data, growing } = useWhole("report", { run: "a", name: "kernel" }, "a");
    if (data) seen.push(`${data.rows.map(([name]) => String(name).slice(7)).join(" ")}${growing ? " ..." : ""}`);
    return null;
  }
  const root = document.createElement("div");
  await act(() =>
    render(
      <ConnectionContext.Provider value={connection}>
        <Probe />
      </ConnectionContext.Provider>,
      root,
    ),
  );
  for (let turn = 0; turn < 30; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
  return { seen: [...new Set(seen)], asked };
}

it("joins the rows that an answer does not hold, each from where the last one ended", async () => {
  const { seen, asked } = await joined(3);
  expect(seen).toEqual(["0 1 2 ...", "0 1 2 3 4 5 ...", "0 1 2 3 4 5 6 7 8 9"]);
  expect(asked).toEqual(["?run=a&name=kernel", ...[3, 6, 9].map((offset) => `?run=a&name=kernel&offset=${offset}`)]);
});

it("asks once where an answer holds all", async () => {
  const { seen, asked } = await joined(TOTAL);
  expect(seen).toEqual(["0 1 2 3 4 5 6 7 8 9"]);
  expect(asked).toHaveLength(1);
});

it("keeps what came before an answer fails", async () => {
  const { seen } = await joined(3, 6);
  expect(seen.at(-1)).toBe("0 1 2 3 4 5");
});
