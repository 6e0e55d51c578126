import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PERFETTO, sendToPerfetto } from "./perfetto";

const BYTES = new ArrayBuffer(4);
let perfetto: { closed: boolean; postMessage: ReturnType<typeof vi.fn> };
let abort: AbortController;
let outcome: string;

const answer = (data: unknown, origin = PERFETTO, source: unknown = perfetto): boolean =>
  window.dispatchEvent(Object.assign(new Event("message"), { data, origin, source }));

beforeEach(() => {
  vi.useFakeTimers();
  perfetto = { closed: false, postMessage: vi.fn() };
  abort = new AbortController();
  outcome = "waits";
  sendToPerfetto(perfetto as unknown as Window, BYTES, "lenet", "lenet.json", abort.signal).then(
    () => (outcome = "sent"),
    (error: unknown) => (outcome = String(error)),
  );
});

afterEach(() => {
  abort.abort();
  vi.useRealTimers();
});

describe("a trace for Perfetto", () => {
  it("is sent once, after the answer to a ping, which is repeated until then", async () => {
    await vi.advanceTimersByTimeAsync(250);
    expect(perfetto.postMessage.mock.calls).toEqual(Array.from({ length: 3 }, () => ["PING", PERFETTO]));
    answer("PONG", "https://example.org");
    answer("PONG", PERFETTO, window);
    answer("PING");
    await vi.advanceTimersByTimeAsync(0);
    expect([outcome, perfetto.postMessage.mock.calls.length]).toEqual(["waits", 3]);
    answer("PONG");
    answer("PONG");
    await vi.advanceTimersByTimeAsync(1000);
    const trace = { perfetto: { buffer: BYTES, title: "lenet", fileName: "lenet.json" } };
    expect([outcome, perfetto.postMessage.mock.calls.slice(3)]).toEqual(["sent", [[trace, PERFETTO, [BYTES]]]]);
  });

  it("is not sent to a window that was closed", async () => {
    perfetto.closed = true;
    await vi.advanceTimersByTimeAsync(100);
    expect(outcome).toBe("Error: The Perfetto window was closed.");
  });

  it("is not sent without an answer within a minute", async () => {
    await vi.advanceTimersByTimeAsync(59_900);
    expect(outcome).toBe("waits");
    await vi.advanceTimersByTimeAsync(100);
    expect(outcome).toContain("did not answer");
    answer("PONG");
    expect(perfetto.postMessage).toHaveBeenCalledTimes(600);
  });

  it("is not sent once it is cancelled", async () => {
    abort.abort(new Error("cancelled"));
    answer("PONG");
    await vi.advanceTimersByTimeAsync(1000);
    expect([outcome, perfetto.postMessage.mock.calls.length]).toEqual(["Error: cancelled", 1]);
  });
});
