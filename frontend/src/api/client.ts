/** Route and query in, decoded page data out; a failure becomes an `ApiError` with the server's own sentence. */
import type {
  AdvicePage,
  ByModelPage,
  CompareOpDetail,
  ComparePage,
  ForecastPage,
  KernelsPage,
  KeyNodesPage,
  LaunchesPage,
  ManyRunsPage,
  MemoryPage,
  ModulesPage,
  OpDetail,
  OpsPage,
  Overview,
  Related,
  ReportPage,
  RooflinePage,
  RunIndex,
  SearchPage,
  SweepPage,
  TensorCoresPage,
  TraceLinks,
} from "./types";

/** The answer of each route. */
export interface Routes {
  runs: RunIndex;
  overview: Overview;
  ops: OpsPage;
  op: OpDetail;
  modules: ModulesPage;
  kernels: KernelsPage;
  launches: LaunchesPage;
  tensor_cores: TensorCoresPage;
  roofline: RooflinePage;
  memory: MemoryPage;
  key_nodes: KeyNodesPage;
  search: SearchPage;
  related: Related;
  report: ReportPage;
  advice: AdvicePage;
  compare: ComparePage;
  compare_op: CompareOpDetail;
  forecast: ForecastPage;
  many_runs: ManyRunsPage;
  by_model: ByModelPage;
  sweep: SweepPage;
  trace_links: TraceLinks;
}

export type Route = keyof Routes;
export type Query = Record<string, string | number | null>;

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** The relative address of a route; parts of the query that are null are left to the server's defaults. */
export function routeAddress(route: Route | "trace", query: Query): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null);
  const text = pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`).join("&");
  return `./${route}${text ? `?${text}` : ""}`;
}

/** Answers kept for going back and forth between pages; a page is at most 1 MB. */
const KEPT_ANSWERS = 24;
/** One answer per key press: they would push out the pages. */
const NOT_KEPT: ReadonlySet<Route> = new Set(["search"]);

export class Client {
  private readonly kept = new Map<string, unknown>();

  /** `base` is the folder of index.js, of which the routes are siblings. */
  constructor(private readonly base: URL) {}

  /** What an earlier request for the same address answered, without asking again. */
  peek<R extends Route>(route: R, query: Query): Routes[R] | undefined {
    return this.kept.get(routeAddress(route, query)) as Routes[R] | undefined;
  }

  async get<R extends Route>(route: R, query: Query, signal?: AbortSignal): Promise<Routes[R]> {
    const address = routeAddress(route, query);
    let response: Response;
    try {
      response = await fetch(new URL(address, this.base), { signal: signal ?? null, headers: { Accept: "application/json" } });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("TensorBoard does not answer. Check that it is still running, then press Refresh.", 0);
    }
    const body = await decode(response);
    if (!response.ok) throw new ApiError(errorText(body) ?? `TensorBoard answered ${response.status} for ${route}.`, response.status);
    if (!NOT_KEPT.has(route)) this.kept.set(address, body);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT_ANSWERS) break;
      this.kept.delete(oldest);
    }
    return body as Routes[R];
  }

  /** A part of a trace file. It is not kept. */
  async piece(query: Query, signal: AbortSignal): Promise<Uint8Array> {
    let response: Response;
    try {
      response = await fetch(new URL(routeAddress("trace", query), this.base), { signal });
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      if (signal.aborted) throw error;
      throw new ApiError("TensorBoard stopped answering while the trace was read. Check that it is still running.", 0);
    }
    throw new ApiError(errorText(await decode(response)) ?? `TensorBoard answered ${response.status} for a part of the trace.`, response.status);
  }

  /** What another plugin or TensorBoard itself answers; null where it does not, or not in JSON. `path` is relative to `data/`. */
  async other(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await fetch(new URL(`../../${path}`, this.base), { signal });
      return response.ok ? await response.json() : null;
    } catch {
      return null;
    }
  }

  /** Forgets every answer, for a refresh. */
  clear(): void {
    this.kept.clear();
  }
}

async function decode(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    if (response.ok) throw new ApiError("The answer was cut off or is not JSON. Press Refresh to ask again.", response.status);
    return null;
  }
}

function errorText(body: unknown): string | null {
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  return typeof body.error === "string" ? body.error : null;
}
