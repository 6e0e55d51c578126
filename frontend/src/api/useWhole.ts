/**
 * A route whose table can have more rows than an answer holds, in; its latest data with all rows that are there so far out. The rest
 * is asked for in the background, one answer after the other, each from the row where the last one ended. Sorting and filtering of
 * the table then see every row.
 */
import { useEffect, useState } from "preact/hooks";
import type { Query, Route, Routes } from "./source";
import { useConnection, useResource, type Resource } from "./useResource";

/** The routes that take an `offset`, and where their rows are. */
const TABLES = { report: "rows", ops: "rows", kernels: "rows", modules: "rows", tensor_cores: "ops" } as const;

export type WholeRoute = keyof typeof TABLES;

export const isWholeRoute = (route: Route): route is WholeRoute => route in TABLES;

export interface WholeResource<T> extends Resource<T> {
  /** More rows are on their way. */
  growing: boolean;
}

/** What was joined, as long as the first answer is kept: a page that was left finds its rows again. */
const joined = new WeakMap<object, object>();

interface Growth {
  first: object;
  data: object;
  ended: boolean;
}

export function useWhole<R extends WholeRoute>(route: R, query: Query, keep: string): WholeResource<Routes[R]> {
  const { client } = useConnection();
  const resource = useResource(route, query, keep);
  const first = resource.data;
  const [growth, setGrowth] = useState<Growth | null>(null);
  const known = first && ((growth?.first === first ? growth.data : joined.get(first)) as Routes[R] | undefined);
  const data = known ?? first;
  const missing =
    first !== null && !resource.stale && client.file === null && rowsOf(route, data!).length < data!.total_rows;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the first answer says which query it is; the rows that came later are no reason to begin again.
  useEffect(() => {
    if (!missing || !first || !data) return undefined;
    const controller = new AbortController();
    void (async () => {
      const rows = [...rowsOf(route, data)];
      let shown = rows.length;
      const show = (ended: boolean): void => {
        const whole = { ...first, [TABLES[route]]: rows.slice() };
        if (ended) joined.set(first, whole);
        shown = rows.length;
        setGrowth({ first, data: whole, ended });
      };
      try {
        while (rows.length < first.total_rows) {
          const more = rowsOf(route, await client.part(route, { ...query, offset: rows.length }, controller.signal));
          if (controller.signal.aborted) return;
          if (more.length === 0) break;
          for (const row of more) rows.push(row);
          // The table is built again each time: at twice the rows, so that this stays a small part of the work.
          if (rows.length >= 2 * shown) show(false);
        }
      } catch {
        // What came so far stays, and the table says that it is not all.
      }
      if (!controller.signal.aborted) show(true);
    })();
    return () => controller.abort();
  }, [first, missing]);

  return { ...resource, data, growing: missing && !(growth?.first === first && growth.ended) };
}

function rowsOf<R extends WholeRoute>(route: R, data: Routes[R]): unknown[] {
  return (data as unknown as Record<string, unknown[]>)[TABLES[route]]!;
}
