import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Client } from "../api/client";
import type { Source } from "../api/source";
import type { TrustPage } from "../api/types";
import { ConnectionContext } from "../api/useResource";
import { trust } from "../testing/fixtures";
import { TrustLine } from "./TrustLine";

let root: HTMLElement;

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
});

afterEach(() => {
  render(null, root);
  root.remove();
});

async function show(answer: () => Promise<TrustPage>): Promise<void> {
  const client = new Client({ file: null, answer } satisfies Source);
  await act(() =>
    render(
      <ConnectionContext.Provider value={{ client, generation: 0 }}>
        <TrustLine query={{ run: "a" }} of="Base" />
      </ConnectionContext.Provider>,
      root,
    ),
  );
  for (let turn = 0; turn < 6; turn++) await act(async () => new Promise((resolve) => setTimeout(resolve, 0)));
}

const line = (): HTMLElement | null => root.querySelector('[data-testid="trust"]');

it("says the verdict, and opens to its reasons", async () => {
  await show(async () => trust);
  expect(line()?.dataset["verdict"]).toBe("fair");
  expect(line()?.querySelector("summary")?.textContent).toBe("! Base: fair why");
  expect([...line()!.querySelectorAll("li")].map((row) => row.textContent)).toEqual(
    trust.reasons.map(({ severity, text }) => `${severity === "good" ? "✓" : "!"}${severity}: ${text}`),
  );
});

it("needs nothing to open where there is no reason", async () => {
  await show(async () => ({ ...trust, verdict: "good", reasons: [] }));
  expect(line()?.tagName).toBe("DIV");
  expect(line()?.textContent).toContain("Base: good");
});

it("keeps its place empty if there is no answer", async () => {
  await show(() => Promise.reject(new Error("gone")));
  expect(line()).toBeNull();
  expect(root.querySelector(".trust")?.textContent).toBe("");
});
