/**
 * A route whose answer grows in; its latest answer out. The server reads for about a second a request and says how much of all it
 * has read; each new answer asks for the next until everything is there. What is there stays visible meanwhile.
 */
import { useEffect, useState } from "preact/hooks";
import type { Query, Routes } from "./source";
import { routeAddress } from "./source";
import { useConnection, useResource, type Resource } from "./useResource";

export type GrowingRoute = "many_runs" | "by_model" | "sweep";

export function useProgress<R extends GrowingRoute>(route: R, query: Query): Resource<Routes[R]> {
  const { generation } = useConnection();
  const asked = `${generation} ${routeAddress(route, query)}`;
  const [progress, setProgress] = useState({ asked, have: 0 });
  const have = progress.asked === asked ? progress.have : 0;
  // `have` does not change the answer: it makes the address of each request its own.
  const resource = useResource(route, have > 0 ? { ...query, have } : query, route);
  const { data, stale } = resource;
  const next = data && !stale && data.done < data.total && data.done > have ? data.done : null;
  useEffect(() => {
    if (next !== null) setProgress({ asked, have: next });
  }, [asked, next]);
  // What is there is true of the runs read so far, and stays readable while more come.
  return { ...resource, stale: stale && have === 0 };
}
