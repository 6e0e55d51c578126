/** The drawing in its box: overview, ruler, labels of the tracks and the canvas; what hovering and the keyboard cursor tell. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TimelineSpot } from "../../api/types";
import { formatNs } from "../../format/duration";
import { describeSpot, HoverCard, type Hovered } from "./HoverCard";
import { foldedAtFirst, layOut } from "./layout";
import { fontOf } from "./draw";
import { markSpan, Minimap } from "./Minimap";
import type { Timeline } from "./model";
import { themeOf } from "./palette";
import { Stage } from "./stage";
import { TrackLabels } from "./TrackLabels";
import type { Loading } from "./useChunks";
import { stepOf, whole, type Span } from "./viewport";
import { themeSignal } from "../../state/theme";

interface FigureProps {
  timeline: Timeline;
  loading: Loading;
  onStage: (stage: Stage | null) => void;
  onSelect: (spot: TimelineSpot | null) => void;
}

/** What part of the window is seen; why there is more than the step. */
export function spanText({ page, windowNs }: Timeline, span: Span): string {
  const { iteration } = page;
  const text = `Shows ${formatNs(span.to - span.from)} of ${formatNs(windowNs)}`;
  const ahead = iteration.start_ns - iteration.host_start_ns;
  const step = stepOf(iteration, windowNs);
  if (span.from !== step.from || span.to !== step.to || ahead <= 0) return text;
  return `Shows the step on the GPU, ${formatNs(span.to - span.from)}. The CPU began it ${formatNs(ahead)} before: Whole shows that, too`;
}

const LEAST_HEIGHT = 240;
/** What of the window stays free for the tools above and the legend below. */
const AROUND = 250;

export function Figure({ timeline, loading, onStage, onSelect }: FigureProps) {
  const theme = themeSignal.value;
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const band = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [space, setSpace] = useState(() => window.innerHeight);
  const [folded, setFolded] = useState(() => foldedAtFirst(timeline.tracks));
  const layout = useMemo(() => layOut(timeline.tracks, folded, width), [timeline, folded, width]);
  const height = Math.min(layout.height, Math.max(LEAST_HEIGHT, space - AROUND));
  const [stage, setStage] = useState<Stage | null>(null);
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const [cursor, setCursor] = useState<TimelineSpot | null>(null);
  const mark = useRef<HTMLDivElement>(null);
  const shows = useRef<HTMLSpanElement>(null);
  const colours = (): ReturnType<typeof themeOf> => {
    const style = getComputedStyle(box.current!);
    return themeOf(
      (property) => style.getPropertyValue(property).trim(),
      timeline.page.kinds,
      fontOf(style.fontFamily),
    );
  };
  const before = useRef<{ limit: number; span: Span } | null>(null);
  const selectNow = useRef(onSelect);
  selectNow.current = onSelect;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new stage for another timeline; the effect below brings layout and colours up to date.
  useEffect(() => {
    const made = new Stage(
      canvas.current!,
      ruler.current!,
      scroller.current!,
      box.current!,
      band.current!,
      timeline,
      layout,
      colours(),
      {
        onSelect: (spot) => selectNow.current(spot),
        onCursor: setCursor,
        onHover: (spot, x, y) => setHovered(spot && { spot, x, y }),
        // By hand, not by Preact: this is done in each frame of a movement.
        onSpan: (span, pixels) => {
          if (mark.current) markSpan(mark.current, span, timeline.windowNs, pixels);
          if (shows.current) shows.current.textContent = spanText(timeline, span);
          box.current!.dataset["from"] = String(Math.round(span.from));
          box.current!.dataset["to"] = String(Math.round(span.to));
        },
      },
    );
    // A refresh brings the same window again.
    if (before.current?.limit === timeline.windowNs) made.span = before.current.span;
    setStage(made);
    onStage(made);
    return () => {
      before.current = { limit: timeline.windowNs, span: made.span };
      made.dispose();
      onStage(null);
    };
  }, [timeline]);

  useEffect(() => {
    const measure = (): void => {
      setWidth(scroller.current!.clientWidth);
      setSpace(window.innerHeight);
    };
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(measure);
    observer?.observe(scroller.current!);
    window.addEventListener("resize", measure);
    measure();
    return () => {
      observer?.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme is what changes the colours, which are read from the style sheet.
  useEffect(() => {
    if (!stage) return;
    stage.layout = layout;
    stage.theme = colours();
    stage.resize(width, height);
  }, [stage, layout, width, height, theme]);

  const fold = (key: string): void => {
    const next = new Set(folded);
    if (!next.delete(key)) next.add(key);
    setFolded(next);
  };
  return (
    <div class="timeline-box">
      <Minimap
        timeline={timeline}
        spanNow={() => stage?.span ?? whole(timeline.windowNs)}
        mark={mark}
        gutter={layout.gutter}
        width={width}
        theme={theme}
        loaded={loading.done}
        onSpan={(next) => stage?.look(next)}
      />
      <div
        class="timeline-figure"
        ref={box}
        role="application"
        aria-roledescription="timeline"
        aria-label={`Timeline of iteration ${timeline.page.iteration.number}: ${timeline.page.events.toLocaleString("en-US")} events in ${timeline.tracks.length} rows. Arrow keys walk the events, Enter selects, W and S zoom, A and D move.`}
        tabIndex={0}
        data-testid="timeline-figure"
        data-loaded={loading.done === loading.of}
        onBlur={() => setHovered(null)}
      >
        <canvas ref={ruler} class="timeline-ruler" aria-hidden="true" />
        <div class="timeline-scroll" ref={scroller} style={{ height: `${height}px` }} tabIndex={-1}>
          <div class="timeline-content" style={{ height: `${layout.height}px` }}>
            <canvas ref={canvas} class="timeline-canvas" aria-hidden="true" data-testid="timeline-canvas" />
            <TrackLabels tracks={timeline.tracks} layout={layout} folded={folded} onFold={fold} />
          </div>
        </div>
        <div class="timeline-band" ref={band} hidden />
        <p class="hidden" aria-live="polite" data-testid="timeline-cursor">
          {cursor && describeSpot(timeline, cursor)}
        </p>
      </div>
      {hovered && <HoverCard timeline={timeline} hovered={hovered} />}
      <p class="timeline-state muted small">
        <span data-testid="timeline-span" ref={shows} />
        {loading.of > 0 && loading.done < loading.of && !loading.error && (
          <span role="status">
            Loading events: {loading.done} of {loading.of} parts
          </span>
        )}
        {loading.error && (
          <span role="alert">
            Some events are missing. {loading.error}{" "}
            <button type="button" class="link" onClick={loading.retry}>
              Ask again
            </button>
          </span>
        )}
      </p>
    </div>
  );
}
