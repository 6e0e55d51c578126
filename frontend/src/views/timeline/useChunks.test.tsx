import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Client } from "../../api/client";
import { ConnectionContext } from "../../api/useResource";
import type { Timeline } from "./model";
import type { Stage } from "./stage";
import { useChunks, type Loading } from "./useChunks";

/** A timeline of three chunks, of which the span shows the second. */
const CHUNKS = [0, 1, 2].map((index) => ({ start_ns: 100 * index, stop_ns: 100 * index + 100, events: 1 }));
let root: HTMLElement;
let loading: Loading;
let asked: number[];
let loaded: number[];
let reply: (chunk: number) => Promise<unknown>;

async function draw(): Promise<void> {
  asked = [];
  loaded = [];
  const client = new Client({
    answer: (_, query) => {
      asked.push(Number(query.chunk));
      return reply(Number(query.chunk));
    },
    file: null,
  });
  const timeline = {
    page: { chunks: CHUNKS },
    has: (chunk: number) => loaded.includes(chunk),
    addChunk: ({ chunk }: { chunk: number }) => loaded.push(chunk),
  } as unknown as Timeline;
  const stage = { span: { from: 110, to: 120 }, redraw: vi.fn() } as unknown as Stage;
  const connection = { client, generation: 0 };
  const Probe = () => {
    loading = useChunks(timeline, { run: "a" }, stage);
    return null;
  };
  await act(async () => {
    render(
      <ConnectionContext.Provider value={connection}>
        <Probe />
      </ConnectionContext.Provider>,
      root,
    );
  });
  await settled();
}

const settled = (): Promise<void> => act(() => new Promise((resolve) => setTimeout(resolve, 5)));

beforeEach(() => {
  root = document.createElement("div");
});

afterEach(() => render(null, root));

describe("the events that the first answer left out", () => {
  it("come one answer after the other, what is in view first", async () => {
    reply = (chunk) => Promise.resolve({ chunk });
    await draw();
    expect([asked, loading.done, loading.of, loading.error]).toEqual([[1, 0, 2], 3, 3, null]);
  });

  it("are not asked for again after a failure, until the reader asks", async () => {
    const never = new Promise<unknown>(() => undefined);
    reply = () => (asked.length === 1 ? Promise.reject(new Error("gone")) : never);
    await draw();
    expect([asked, loading.error]).toEqual([[1], "gone"]);
    reply = (chunk) => Promise.resolve({ chunk });
    act(() => loading.retry());
    await settled();
    expect([asked, loading.done, loading.error]).toEqual([[1, 1, 0, 2], 3, null]);
  });
});
