/** Answers from a server, TensorBoard or `tb-dlprof view`, over HTTP; a failure becomes an `ApiError` with the server's own sentence. */
import { ApiError, routeAddress, type FileRoute, type Query, type Route, type Source } from "./source";
import type { RunIndex } from "./types";

export class Server implements Source {
  readonly file = null;

  /** What the server called each list of runs. */
  private readonly tags = new WeakMap<RunIndex, string>();

  /** `base` is the folder of index.js, of which the routes are siblings. */
  constructor(private readonly base: URL) {}

  async answer(route: Route, query: Query, signal?: AbortSignal): Promise<unknown> {
    return route === "runs" ? this.runs(null, signal) : decoded(route, await this.ask(route, query, {}, signal));
  }

  /**
   * The list of runs; `known` itself where nothing in it changed. It comes in pieces of at most 1 MB: hundreds of runs with 64 ranks each
   * take several, and the revision in the first changes with any of them.
   */
  async runs(known: RunIndex | null, signal?: AbortSignal): Promise<RunIndex> {
    const tag = known && this.tags.get(known);
    const response = await this.ask("runs", {}, tag ? { "If-None-Match": tag } : {}, signal);
    if (known && response.status === 304) return known;
    const first = (await decoded("runs", response)) as RunIndex;
    // A proxy may have taken the tag away.
    if (known && known.revision === first.revision) return known;
    const runs = [...first.runs];
    while (runs.length < first.total) {
      const next = (await decoded("runs", await this.ask("runs", { offset: runs.length }, {}, signal))) as RunIndex;
      // Runs that went away while it was read.
      if (next.runs.length === 0) break;
      runs.push(...next.runs);
    }
    const index = { ...first, runs };
    const given = response.headers.get("ETag");
    if (given !== null) this.tags.set(index, given);
    return index;
  }

  private async ask(route: Route, query: Query, more: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    try {
      return await fetch(new URL(routeAddress(route, query), this.base), {
        signal: signal ?? null,
        headers: { Accept: "application/json", ...more },
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("The server does not answer. Check that it is still running, then press Refresh.", 0);
    }
  }

  /** A part of a file. */
  async piece(route: FileRoute, query: Query, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    let response: Response;
    try {
      response = await fetch(new URL(routeAddress(route, query), this.base), { signal });
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      if (signal.aborted) throw error;
      throw new ApiError("The server stopped answering while the file was read. Check that it is still running.", 0);
    }
    throw new ApiError(
      errorText(await decode(response)) ?? `The server answered ${response.status} for a part of the file.`,
      response.status,
    );
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

/** The body of an answer, or the error that it is. */
async function decoded(route: Route, response: Response): Promise<unknown> {
  const body = await decode(response);
  if (response.ok) return body;
  throw new ApiError(errorText(body) ?? `The server answered ${response.status} for ${route}.`, response.status);
}

async function decode(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    if (response.ok)
      throw new ApiError("The answer was cut off or is not JSON. Press Refresh to ask again.", response.status);
    return null;
  }
}

function errorText(body: unknown): string | null {
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  return typeof body.error === "string" ? body.error : null;
}
