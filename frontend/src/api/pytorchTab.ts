/** Whether the PyTorch Profiler tab (torch-tb-profiler) is there and has a run. */
import { useEffect, useState } from "preact/hooks";
import { useConnection } from "./useResource";

export const PYTORCH_TAB = "pytorch_profiler";

/** The tab reads its files a while after TensorBoard has started. */
const ASK_AGAIN_MS = 4000;
const MOST_ASKED = 30;

export type TabState = "absent" | "loading" | "has_run";

export function usePytorchTab(run: string | null): TabState {
  const { client, generation } = useConnection();
  const [state, setState] = useState<TabState>("absent");
  // biome-ignore lint/correctness/useExhaustiveDependencies: a refresh asks again, with the same client.
  useEffect(() => {
    if (run === null) return undefined;
    const controller = new AbortController();
    let timer = 0;
    const ask = async (left: number): Promise<void> => {
      const listing = await client.other("plugins_listing", controller.signal);
      // Asking a plugin that is not installed would be an error in the browser's console.
      const answer = isEnabled(listing) ? await client.other(`plugin/${PYTORCH_TAB}/runs`, controller.signal) : null;
      if (controller.signal.aborted) return;
      const found = tabState(answer, run);
      setState(found);
      if (found === "loading" && left > 0) timer = window.setTimeout(() => void ask(left - 1), ASK_AGAIN_MS);
    };
    void ask(MOST_ASKED);
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [run, generation]);
  return state;
}

function isEnabled(listing: unknown): boolean {
  const entry: unknown = isRecord(listing) ? listing[PYTORCH_TAB] : null;
  return isRecord(entry) && entry.enabled === true;
}

function tabState(answer: unknown, run: string): TabState {
  if (!isRecord(answer) || !Array.isArray(answer.runs)) return "absent";
  if (answer.runs.includes(run)) return "has_run";
  return answer.loading === true ? "loading" : "absent";
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
