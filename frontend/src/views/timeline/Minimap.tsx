/** The whole window in a strip, with the visible part marked: a drag moves it, a drag outside of it marks another one. */
import { useEffect, useRef } from "preact/hooks";
import type { Timeline } from "./model";
import { paintLane } from "./pixels";
import { themeOf } from "./palette";
import { whole, type Span } from "./viewport";

interface MinimapProps {
  timeline: Timeline;
  /** The visible part: what moves it moves the mark by `markSpan`, without a render by Preact. */
  spanNow: () => Span;
  mark: { current: HTMLDivElement | null };
  gutter: number;
  width: number;
  theme: string;
  /** Draws again when more is loaded. */
  loaded: number;
  onSpan: (span: Span) => void;
}

const HEIGHT = 30;
/** The mark is at least so wide (pixels), that it can be seen and taken. */
const LEAST_MARK = 6;

/** Puts the mark over the visible part. */
export function markSpan(mark: HTMLElement, span: Span, limit: number, pixels: number): void {
  const left = (span.from / limit) * pixels;
  mark.style.width = `${Math.max(LEAST_MARK, ((span.to - span.from) / limit) * pixels)}px`;
  mark.style.transform = `translateX(${Math.min(left, pixels - LEAST_MARK)}px)`;
}

export function Minimap({ timeline, spanNow, mark, gutter, width, theme, loaded, onSpan }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ at: number; span: Span; moves: boolean } | null>(null);
  const pixels = Math.max(1, width - gutter);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme changes the colours of the style sheet, loaded what the timeline holds, gutter the pixels.
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(pixels * ratio);
    element.height = Math.round(HEIGHT * ratio);
    const style = getComputedStyle(element);
    const colours = themeOf((property) => style.getPropertyValue(property).trim(), timeline.page.kinds, "");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, pixels, HEIGHT);
    // What each GPU computes and each training thread's outermost calls: one line of pixels for each of the first tracks.
    const tracks = timeline.tracks.flatMap((track, index) =>
      track.kind === "parts" || track.kind === "stream" ? [index] : [],
    );
    const shown = (tracks.length > 0 ? tracks : timeline.tracks.map((_, index) => index)).slice(0, 6);
    const line = HEIGHT / shown.length;
    shown.forEach((track, place) => {
      const fill = (colour: string, x0: number, x1: number): void => {
        context.fillStyle = colour;
        context.fillRect(x0, place * line + 1, Math.max(0.5, x1 - x0), line - 2);
      };
      const lane = timeline.lane(track, 0);
      const shades = (kind: string, other: boolean) => (other ? colours.of[kind]!.pale : colours.of[kind]!.own);
      if (lane.coarse) {
        const scale = pixels / timeline.windowNs;
        lane.coarse.start.forEach((start, at) => {
          fill(
            shades(timeline.page.kinds[lane.coarse!.kind[at]!]!, false)[lane.coarse!.cover[at]! - 1]!,
            start * scale,
            lane.coarse!.stop[at]! * scale,
          );
        });
      }
      paintLane(lane, whole(timeline.windowNs), pixels, {
        wide: (block, index, x0, x1) => {
          const name = timeline.name(block.name[index]!);
          fill(shades(name.kind, name.other)[3]!, x0, x1);
        },
        run: (index, x0, x1, cover) => {
          const name = timeline.name(index);
          fill(shades(name.kind, name.other)[cover - 1]!, x0, x1);
        },
      });
    });
  }, [timeline, width, gutter, theme, loaded]);

  const timeAt = (event: PointerEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / pixels)) * timeline.windowNs;
  };
  const move = (event: PointerEvent): void => {
    const from = drag.current;
    if (!from) return;
    const at = timeAt(event);
    if (from.moves) onSpan({ from: from.span.from + at - from.at, to: from.span.to + at - from.at });
    else if (Math.abs(at - from.at) > timeline.windowNs / 300)
      onSpan({ from: Math.min(from.at, at), to: Math.max(from.at, at) });
  };
  const down = (event: PointerEvent): void => {
    const at = timeAt(event);
    const span = spanNow();
    const all = span.to - span.from > 0.98 * timeline.windowNs;
    drag.current = { at, span, moves: !all && at >= span.from && at <= span.to };
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };
  const up = (event: PointerEvent): void => {
    const from = drag.current;
    drag.current = null;
    // A click outside of the mark moves it there.
    if (from && !from.moves && Math.abs(timeAt(event) - from.at) <= timeline.windowNs / 300) {
      const half = (from.span.to - from.span.from) / 2;
      onSpan({ from: from.at - half, to: from.at + half });
    }
  };
  return (
    <div
      class="timeline-minimap"
      style={{ marginLeft: `${gutter}px`, width: `${pixels}px`, height: `${HEIGHT}px` }}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      aria-hidden="true"
      data-testid="timeline-minimap"
    >
      <canvas ref={canvas} style={{ width: `${pixels}px`, height: `${HEIGHT}px` }} />
      <div class="timeline-mark" ref={mark} />
    </div>
  );
}
