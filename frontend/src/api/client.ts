/** Route and query in, decoded page data out, kept for going back; a failure is an `ApiError` with a sentence for people. */
import { Server } from "./server";
import {
  NotInFile,
  routeAddress,
  type FileFacts,
  type FileRoute,
  type Query,
  type Route,
  type Routes,
  type Source,
} from "./source";
import type { RunIndex } from "./types";

/** Answers kept for going back and forth between pages; a page is at most 1 MB. */
const KEPT_ANSWERS = 24;
/** One answer per key press, or one of many large ones: they would push out the pages. */
const NOT_KEPT: ReadonlySet<Route> = new Set(["search", "timeline_events"]);

export class Client {
  private readonly kept = new Map<string, unknown>();
  private readonly source: Source;

  /** `source` may be the address of the folder of index.js, of which the routes are siblings. */
  constructor(source: Source | URL) {
    this.source = source instanceof URL ? new Server(source) : source;
  }

  get file(): FileFacts | null {
    return this.source.file;
  }

  /** What an earlier request for the same address answered, without asking again. */
  peek<R extends Route>(route: R, query: Query): Routes[R] | undefined {
    return this.kept.get(routeAddress(route, query)) as Routes[R] | undefined;
  }

  /** An answer that is only a part of one: it is not kept. */
  async part<R extends Route>(route: R, query: Query, signal?: AbortSignal): Promise<Routes[R]> {
    return (await this.source.answer(route, query, signal)) as Routes[R];
  }

  async get<R extends Route>(route: R, query: Query, signal?: AbortSignal): Promise<Routes[R]> {
    const body = await this.source.answer(route, query, signal);
    if (!NOT_KEPT.has(route)) this.kept.set(routeAddress(route, query), body);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT_ANSWERS) break;
      this.kept.delete(oldest);
    }
    return body as Routes[R];
  }

  /** The runs of the logdir, always asked for; `known` itself where they are the same still, which is all that then is sent. */
  async runs(known: RunIndex | null): Promise<RunIndex> {
    if (this.source instanceof Server) return this.source.runs(known);
    return known ?? ((await this.source.answer("runs", {})) as RunIndex);
  }

  /** Forgets what was answered for the latest recording of these runs, and for all runs together. */
  forget(runs: readonly string[]): void {
    const changed = new Set(runs);
    for (const address of [...this.kept.keys()]) {
      const url = new URL(address, "http://routes/");
      const sides = ["", "a.", "b."].filter((side) => url.searchParams.has(`${side}run`));
      const fixed = sides.every(
        (side) =>
          !changed.has(url.searchParams.get(`${side}run`)!) ||
          (url.searchParams.has(`${side}session`) && url.searchParams.has(`${side}cycle`)),
      );
      if (sides.length === 0 || !fixed) this.kept.delete(address);
    }
  }

  /** A part of a file. It is not kept. */
  async piece(route: FileRoute, query: Query, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.source instanceof Server) return this.source.piece(route, query, signal);
    throw new NotInFile("Other files are not in this file.");
  }

  /** What another plugin or TensorBoard itself answers; null where it does not, or not in JSON. `path` is relative to `data/`. */
  async other(path: string, signal: AbortSignal): Promise<unknown> {
    return this.source instanceof Server ? this.source.other(path, signal) : null;
  }

  /** Forgets every answer, for a refresh. */
  clear(): void {
    this.kept.clear();
  }
}
