/** Which chunks to ask for next: those in view from the middle outwards, then, where all of them fit, the others. */
import type { TimelineChunk } from "../../api/types";
import type { Span } from "./viewport";

/** Up to this many are loaded without being looked at; more would be more than people wait for. */
export const LOAD_ALL_UP_TO = 24;
/** More are not kept; each has up to 20,000 events. */
export const KEEP = 40;
/** Zoomed out further than this many chunks, the picture of the first answer is as fine as the screen. */
const LOOK_AT = 8;

/** The chunk to load next, null where there is none to load. */
export function nextChunk(
  chunks: readonly TimelineChunk[],
  has: (chunk: number) => boolean,
  span: Span,
): number | null {
  const visible = chunksIn(chunks, span);
  const middle = (span.from + span.to) / 2;
  const distance = (chunk: number): number => Math.abs((chunks[chunk]!.start_ns + chunks[chunk]!.stop_ns) / 2 - middle);
  const wanted = (list: number[]): number | null =>
    list.filter((chunk) => !has(chunk)).sort((a, b) => distance(a) - distance(b))[0] ?? null;
  if (chunks.length <= LOAD_ALL_UP_TO) return wanted(visible) ?? wanted(chunks.map((_, index) => index));
  return visible.length <= LOOK_AT ? wanted(visible) : null;
}

/** Chunks that hold something of the span. */
export function chunksIn(chunks: readonly TimelineChunk[], span: Span): number[] {
  return chunks.flatMap((chunk, index) => (chunk.start_ns < span.to && chunk.stop_ns > span.from ? [index] : []));
}

/** The loaded chunk that is farthest from the span, to be forgotten. */
export function farthest(chunks: readonly TimelineChunk[], loaded: readonly number[], span: Span): number | null {
  const middle = (span.from + span.to) / 2;
  const distance = (chunk: number): number => Math.abs((chunks[chunk]!.start_ns + chunks[chunk]!.stop_ns) / 2 - middle);
  return [...loaded].sort((a, b) => distance(b) - distance(a))[0] ?? null;
}
