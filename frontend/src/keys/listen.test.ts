import { afterEach, expect, it, vi } from "vitest";
import { onReload } from "../shell/live/tensorboard";
import { listenForKeys } from "./listen";
import type { Shortcuts } from "./shortcuts";

const shortcuts = { press: () => null } as unknown as Shortcuts;

afterEach(() => {
  vi.restoreAllMocks();
  window.history.replaceState(null, "", window.location.pathname);
});

/** What the page uses of the window around it: the events that it listens to, and the messages that it sends. */
function asked(query: string): string[] {
  const calls: string[] = [];
  const around = {
    document: { addEventListener: (name: string) => calls.push(name), removeEventListener: () => undefined },
    postMessage: (message: string) => calls.push(message),
  };
  vi.spyOn(window, "parent", "get").mockReturnValue(around as unknown as Window & typeof globalThis);
  window.history.replaceState(null, "", query);
  listenForKeys(shortcuts)();
  onReload(() => undefined)();
  return calls;
}

it("listens to keys and reloads of TensorBoard, and leaves a notebook around it alone", () => {
  expect(asked("?name=tb_dlprof")).toEqual(["keydown", "experimental.bootstrap"]);
  expect(asked("?name=tb_dlprof&alone=1")).toEqual([]);
});
