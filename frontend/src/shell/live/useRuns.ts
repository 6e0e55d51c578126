/**
 * The runs of the logdir, kept up to date: asked for again when TensorBoard reloads its data, every half minute while the page is
 * seen, and when it is seen again. An answer that is the same as the last one changes nothing.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Client } from "../../api/client";
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

/** `onNews` gets the list that was shown and the one that came, before the latter is shown. */
export function useRuns(client: Client, onNews: (before: RunIndex, after: RunIndex) => void): Runs {
  const [held, setHeld] = useState<{ data: RunIndex | null; error: ApiError | null }>({ data: null, error: null });
  const [slow, setSlow] = useState(false);
  const [busy, setBusy] = useState(false);
  const state = useRef({ text: "", data: null as RunIndex | null, asking: null as Promise<void> | null, gone: false });
  const news = useRef(onNews);
  news.current = onNews;

  const ask = async (): Promise<void> => {
    const mine = state.current;
    const timer = setTimeout(() => !mine.gone && setSlow(true), SLOW_MS);
    try {
      const { text, data } = await client.runs();
      if (mine.gone) return;
      if (text !== mine.text) {
        if (mine.data) news.current(mine.data, data);
        mine.text = text;
        mine.data = data;
      }
      setHeld((before) => (before.data === mine.data && before.error === null ? before : { data: mine.data, error: null }));
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

  useEffect(() => {
    state.current.gone = false;
    void poll();
    // What an exported file holds does not change.
    if (client.file !== null) return undefined;
    const whenSeen = (): void => {
      if (document.visibilityState === "visible") void poll();
    };
    const timer = setInterval(whenSeen, EVERY_MS);
    const stop = onReload(() => void poll());
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
