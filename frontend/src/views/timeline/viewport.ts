/** The visible stretch of time and how it moves. Pure: `limit` is the length of the window that can be seen at all, in ns. */
import { multiples, roundStep } from "../../components/chart/axis";

export interface Span {
  from: number;
  to: number;
}

/** Closer than this there is nothing more to see: clocks of CPU and GPU tick in ns. */
export const CLOSEST_NS = 200;

/** Room on each side of what is zoomed to, as a share of it. */
const MARGIN = 1;

export const whole = (limit: number): Span => ({ from: 0, to: limit });

/** The measured step alone: without what the CPU does before the GPU begins it. */
export const stepOf = ({ start_ns, stop_ns }: { start_ns: number; stop_ns: number }, limit: number): Span =>
  clamp({ from: start_ns, to: stop_ns }, limit);

/** The nearest span inside the window. */
export function clamp(span: Span, limit: number): Span {
  const length = Math.min(limit, Math.max(CLOSEST_NS, span.to - span.from));
  const middle = (span.from + span.to) / 2;
  const from = Math.min(
    Math.max(0, span.to - span.from < CLOSEST_NS ? middle - length / 2 : span.from),
    limit - length,
  );
  return { from, to: from + length };
}

/** `factor` below 1 looks closer; the moment at the share `anchor` of the width stays where it is. */
export function zoom(span: Span, factor: number, anchor: number, limit: number): Span {
  const length = Math.min(limit, Math.max(CLOSEST_NS, (span.to - span.from) * factor));
  const fixed = span.from + anchor * (span.to - span.from);
  return clamp({ from: fixed - anchor * length, to: fixed + (1 - anchor) * length }, limit);
}

/** Moves by a share of its length. */
export function pan(span: Span, share: number, limit: number): Span {
  const by = share * (span.to - span.from);
  return clamp({ from: span.from + by, to: span.to + by }, limit);
}

/** A stretch of time with room around it. */
export function fit(start: number, stop: number, limit: number): Span {
  const room = Math.max(stop - start, CLOSEST_NS) * MARGIN;
  return clamp({ from: start - room, to: stop + room }, limit);
}

/** The span moved as little as shows the event; as it is where it does. */
export function reveal(span: Span, start: number, stop: number, limit: number): Span {
  const length = span.to - span.from;
  if (stop > span.from + 0.02 * length && start < span.to - 0.02 * length) return span;
  const middle = (start + Math.min(stop, start + length)) / 2;
  return clamp({ from: middle - length / 2, to: middle + length / 2 }, limit);
}

/** Moments of a ruler: round steps of at least `least` pixels. */
export function ticks(span: Span, pixels: number, least: number): number[] {
  const perPixel = (span.to - span.from) / Math.max(1, pixels);
  return multiples(roundStep(Math.max(1, perPixel * least)), [span.from, span.to]);
}
