/**
 * The runs of the logdir, kept up to date: while the page is seen they are asked for every half minute and when TensorBoard reloads its
 * data, and again when it comes into sight. Where nothing changed, the server says only that.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Client } from "../../api/client";
import { ApiError } from "../../api/source";
import type { RunIndex } from "../../api/types";
import { onReload } from "./tensorboard";

const EVERY_MS = 30_000;
const SLOW_MS = 200;

export interface Runs {
  data: RunIndex | null;
  /** Why there is no list, or why it may be old. */
  error: ApiError | null;
  slow: boolean;
  /** Someone asked for it; what the page does by itself is not worth a word. */
  busy: boolean;
  check: () => Promise<void>;
}

/** `onUpdate` gets the list that was shown and the one that came, before the latter is shown. */
export function useRuns(client: Client, onUpdate: (before: RunIndex, after: RunIndex) => void): Runs {
  const [held, setHeld] = useState<{ data: RunIndex | null; error: ApiError | null }>({ data: null, error: null });
  const [slow, setSlow] = useState(false);
  const [busy, setBusy] = useState(false);
  const state = useRef({ data: null as RunIndex | null, asking: null as Promise<void> | null, gone: false });
  const latest = useRef(onUpdate);
  latest.current = onUpdate;

  const ask = async (): Promise<void> => {
    const mine = state.current;
    const timer = setTimeout(() => !mine.gone && setSlow(true), SLOW_MS);
    try {
      const data = await client.runs(mine.data);
      if (mine.gone) return;
      if (data !== mine.data) {
        if (mine.data) latest.current(mine.data, data);
        mine.data = data;
      }
      setHeld((before) =>
        before.data === mine.data && before.error === null ? before : { data: mine.data, error: null },
      );
    } catch (error) {
      if (mine.gone) return;
      setHeld({ data: mine.data, error: error instanceof ApiError ? error : new ApiError(String(error), 0) });
    } finally {
      clearTimeout(timer);
      mine.asking = null;
      if (!mine.gone) setSlow(false);
    }
  };
  const poll = (): Promise<void> => (state.current.asking ??= ask());
  const check = async (): Promise<void> => {
    setBusy(true);
    await poll();
    if (!state.current.gone) setBusy(false);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: poll reads what is current from a ref; a new function of the same kind is no reason to begin again.
  useEffect(() => {
    state.current.gone = false;
    void poll();
    // What an exported file holds does not change.
    if (client.file !== null) return undefined;
    const whenSeen = (): void => {
      if (document.visibilityState === "visible") void poll();
    };
    const timer = setInterval(whenSeen, EVERY_MS);
    const stop = onReload(whenSeen);
    document.addEventListener("visibilitychange", whenSeen);
    return () => {
      state.current.gone = true;
      clearInterval(timer);
      stop();
      document.removeEventListener("visibilitychange", whenSeen);
    };
  }, [client]);
  return { ...held, slow, busy, check };
}
