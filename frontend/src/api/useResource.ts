/**
 * A route and query in; data, error and waiting state out. A newer request aborts the older one, so that a late answer never
 * replaces a newer one. Data of the same `keep` key stays visible (marked stale) while its successor loads.
 */
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";
import type { Client } from "./client";
import { ApiError, routeAddress, type FileFacts, type Query, type Route, type Routes } from "./source";

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  /** True once a request has taken long enough to be worth showing. */
  slow: boolean;
  /** The data answers an earlier query. */
  stale: boolean;
  /** Asks once more, after an error. */
  retry: () => void;
}

/** A wait below this is not noticed. */
const SLOW_MS = 200;

export interface Connection {
  client: Client;
  /** Grows with each refresh, so that everything is asked for again. */
  generation: number;
}

export const ConnectionContext = createContext<Connection | null>(null);

export function useConnection(): Connection {
  const connection = useContext(ConnectionContext);
  if (!connection) throw new Error("useConnection outside of App");
  return connection;
}

/** What the exported file says of itself that answers; null where a server does. */
export function useFile(): FileFacts | null {
  return useContext(ConnectionContext)?.client.file ?? null;
}

interface Held<T> {
  address: string;
  keep: string;
  data: T | null;
  error: ApiError | null;
}

/** `query` null: ask for nothing. */
export function useResource<R extends Route>(route: R, query: Query | null, keep = ""): Resource<Routes[R]> {
  const { client, generation } = useConnection();
  const [attempt, setAttempt] = useState(0);
  const address = query ? `${generation}.${attempt} ${routeAddress(route, query)}` : "";
  const retry = useCallback(() => setAttempt((count) => count + 1), []);
  const [held, setHeld] = useState<Held<Routes[R]> | null>(null);
  const [slowAddress, setSlowAddress] = useState("");

  // biome-ignore lint/correctness/useExhaustiveDependencies: the address says all of client, route and query; the rest is new in each rendering.
  useEffect(() => {
    if (!query) return undefined;
    const kept = client.peek(route, query);
    if (kept !== undefined) {
      setHeld({ address, keep, data: kept, error: null });
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => setSlowAddress(address), SLOW_MS);
    client
      .get(route, query, controller.signal)
      .then((data) => !controller.signal.aborted && setHeld({ address, keep, data, error: null }))
      .catch((error: unknown) => {
        if (controller.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError(String(error), 0);
        // If the server could not be reached, its last answer stays next to the error; what it refuses is not shown.
        setHeld((before) => ({
          address,
          keep,
          data: isPassing(shown) && before?.keep === keep ? before.data : null,
          error: shown,
        }));
      })
      .finally(() => clearTimeout(timer));
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [address]);

  if (!query) return { data: null, error: null, slow: false, stale: false, retry };
  if (held?.address === address)
    return { data: held.data, error: held.error, slow: false, stale: held.error !== null && held.data !== null, retry };
  const kept = client.peek(route, query);
  if (kept !== undefined) return { data: kept, error: null, slow: false, stale: false, retry };
  const data = held && held.keep === keep ? held.data : null;
  return { data, error: null, slow: slowAddress === address, stale: data !== null, retry };
}

/** Whether asking again may help: no answer at all, or a failure of the server. */
const isPassing = (error: ApiError): boolean => error.status === 0 || error.status >= 500;
