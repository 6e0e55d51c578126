/** Loads the events that the first answer left out, one answer after the other: what is in view first. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Query } from "../../api/source";
import { useConnection } from "../../api/useResource";
import { farthest, KEEP, nextChunk } from "./loader";
import type { Timeline } from "./model";
import type { Stage } from "./stage";

export interface Loading {
  /** Chunks that are loaded, of how many. */
  done: number;
  of: number;
  error: string | null;
  retry: () => void;
}

export function useChunks(timeline: Timeline, query: Query, stage: Stage | null): Loading {
  const { client } = useConnection();
  const { chunks } = timeline.page;
  const [done, setDone] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const work = useRef<() => void>(() => undefined);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline is of one query and holds its chunks.
  useEffect(() => {
    if (!stage || chunks.length === 0) return undefined;
    const controller = new AbortController();
    let busy = false;
    let failed = false;
    const loaded: number[] = [];
    const next = async (): Promise<void> => {
      const chunk =
        busy || failed || controller.signal.aborted
          ? null
          : nextChunk(chunks, (index) => timeline.has(index), stage.span);
      if (chunk === null) return;
      busy = true;
      try {
        const answer = await client.get("timeline_events", { ...query, chunk }, controller.signal);
        timeline.addChunk(answer);
        loaded.push(chunk);
        while (loaded.length > KEEP) {
          const far = farthest(chunks, loaded, stage.span)!;
          loaded.splice(loaded.indexOf(far), 1);
          timeline.dropChunk(far);
        }
        setDone(loaded.length);
        stage.redraw();
      } catch (problem) {
        if (controller.signal.aborted) return;
        failed = true;
        setError(problem instanceof Error ? problem.message : String(problem));
      } finally {
        busy = false;
      }
      void next();
    };
    work.current = () => {
      failed = false;
      setError(null);
      void next();
    };
    stage.onLook = () => void next();
    void next();
    return () => controller.abort();
  }, [timeline, stage, client]);

  return { done, of: chunks.length, error, retry: () => work.current() };
}
