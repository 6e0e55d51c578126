/** Answers from TensorBoard, over HTTP; a failure becomes an `ApiError` with the server's own sentence. */
import { ApiError, routeAddress, type Query, type Route, type Source } from "./client";
import type { RunIndex } from "./types";

export class Server implements Source {
  readonly file = null;

  /** `base` is the folder of index.js, of which the routes are siblings. */
  constructor(private readonly base: URL) {}

  async answer(route: Route, query: Query, signal?: AbortSignal): Promise<unknown> {
    const answer = await this.ask(route, query, signal);
    return route === "runs" ? this.withRest(answer as RunIndex, signal) : answer;
  }

  /** The list of runs comes in pieces of at most 1 MB: hundreds of runs with 64 ranks each take several. */
  private async withRest(index: RunIndex, signal?: AbortSignal): Promise<RunIndex> {
    const runs = [...index.runs];
    while (runs.length < index.total) {
      const next = (await this.ask("runs", { offset: runs.length }, signal)) as RunIndex;
      // Runs that went away while it was read.
      if (next.runs.length === 0) break;
      runs.push(...next.runs);
    }
    return { ...index, runs };
  }

  private async ask(route: Route, query: Query, signal?: AbortSignal): Promise<unknown> {
    let response: Response;
    try {
      response = await fetch(new URL(routeAddress(route, query), this.base), { signal: signal ?? null, headers: { Accept: "application/json" } });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("TensorBoard does not answer. Check that it is still running, then press Refresh.", 0);
    }
    const body = await decode(response);
    if (!response.ok) throw new ApiError(errorText(body) ?? `TensorBoard answered ${response.status} for ${route}.`, response.status);
    return body;
  }

  /** A part of a trace file. */
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

  /** What another plugin or TensorBoard itself answers; null where it does not. */
  async other(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await fetch(new URL(`../../${path}`, this.base), { signal });
      return response.ok ? await response.json() : null;
    } catch {
      return null;
    }
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
