/**
 * Two axes, a tooltip and what a caller draws between them, as SVG: colours and the theme are the style sheet's, and a saved picture is
 * a copy of the elements. It follows the width of its box: a hidden TensorBoard tab has none, so it draws once there is room.
 */
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Axis, type Scale, scaleOf, type Span, TURNED_DEGREES, turnedSize, widthOf } from "./axis";

export interface TipLine {
  colour?: string;
  label: string;
  value: string;
}

export interface Tip {
  title: string;
  lines: readonly TipLine[];
  /** A sentence below the lines. */
  note?: string;
  /** What it is about, from left to right: marked as a band, or as a line where both ends are one. */
  marked?: Span;
}

/** The area between the axes. */
export interface Plot {
  width: number;
  height: number;
  x: Scale;
  y: Scale;
}

interface ChartProps {
  height: number;
  /** What a screen reader says in place of the drawing. */
  label: string;
  x: Axis;
  y: (height: number) => Axis;
  draw: (plot: Plot) => ComponentChildren;
  /** What is drawn differs only with these and with the room. */
  inputs: readonly unknown[];
  /** What is at a place, in pixels of the plot; null for nothing. */
  tip: (plot: Plot, x: number, y: number) => Tip | null;
  /** Room for what is above the plot, and at its right. */
  top?: number;
  right?: number;
  /** Whether Ctrl and the wheel zoom. */
  zooms?: boolean;
  /** A stretch of the x axis that is marked. */
  marked?: Span | null;
  /** Called while the pointer is dragged, with where from and where to (null for nowhere yet), and when it is released. */
  onDrag?: (dragged: Span | null, done: boolean) => void;
  /** A click on the plot. */
  onPick?: (at: number) => void;
}

/** A shorter drag is a click. */
const LEAST_DRAG_PX = 4;
const CLOSEST = 1 / 1000;
const ZOOM_PER_PX = 0.002;
const LABEL_PX = 18;
const TITLE_PX = 18;

export function Chart(props: ChartProps) {
  const { height, label } = props;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const pointed = useSignal<Pointed | null>(null);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => element.clientWidth > 0 && setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="chart" ref={box} style={{ height: `${height}px` }} role="img" aria-label={label}>
      {width > 0 && <Drawn {...props} width={width} pointed={pointed} />}
      <TipBox pointed={pointed} />
    </div>
  );
}

interface Pointed {
  tip: Tip;
  plot: Plot;
  /** In pixels of the box. */
  x: number;
  y: number;
}

interface DrawnProps extends ChartProps {
  width: number;
  pointed: Signal<Pointed | null>;
}

function Drawn({ height, width, x, y: axisOf, draw, inputs, tip, top = 12, right = 12, pointed, ...rest }: DrawnProps) {
  const { zooms = false, marked = null, onDrag, onPick } = rest;
  const [zoomed, setZoomed] = useState<{ of: string; span: Span } | null>(null);
  // Another axis begins unzoomed.
  const whole = x.span.join();
  const shown = zoomed?.of === whole ? zoomed.span : null;
  const span = shown ?? x.span;
  const names = x.turned ? x.ticks(span, width) : [];
  const reach = names.length > 0 ? Math.max(...names.map((tick) => turnedSize(tick.label)[1])) + 10 : 0;
  const bottom = (reach || LABEL_PX) + (x.title ? TITLE_PX : 0) + 2;
  const inner = Math.max(1, height - top - bottom);
  const y = axisOf(inner);
  const beside = Math.max(...y.ticks(y.span, inner).map((tick) => widthOf(tick.label))) + 12;
  // A turned label begins left of its place.
  const across = scaleOf(x, span, Math.max(1, width - beside - right));
  const left = Math.ceil(Math.max(beside, ...names.map(({ value, label }) => turnedSize(label)[0] - across.at(value))));
  const room = Math.max(1, width - left - right);
  const plot: Plot = { width: room, height: inner, x: scaleOf(x, span, room), y: scaleOf(y, y.span, inner, true) };
  // biome-ignore lint/correctness/useExhaustiveDependencies: callers say by their inputs when what they draw differs; a drag over thousands of points draws them once.
  const drawn = useMemo(() => draw(plot), [room, inner, ...span, ...inputs]);
  const from = useRef<number | null>(null);

  const place = (event: MouseEvent): [x: number, y: number, inside: boolean] => {
    const { left: start, top: above } = (event.currentTarget as Element).getBoundingClientRect();
    const [across, down] = [event.clientX - start - left, event.clientY - above - top];
    return [across, down, across >= 0 && across <= room && down >= 0 && down <= inner];
  };
  const point = (across: number, down: number, inside: boolean): void => {
    const found = inside ? tip(plot, across, down) : null;
    pointed.value = found && { tip: found, plot, x: left + across, y: top + down };
  };
  const drag = (across: number): Span | null =>
    from.current === null || Math.abs(across - from.current) < LEAST_DRAG_PX
      ? null
      : [plot.x.valueAt(from.current), plot.x.valueAt(across)];
  const zoom = (event: WheelEvent): void => {
    const [across, , inside] = place(event);
    if (!zooms || !event.ctrlKey || !inside) return;
    event.preventDefault();
    const share = across / room;
    const [first, last] = x.span;
    const length = Math.max((last - first) * CLOSEST, (span[1] - span[0]) * Math.exp(event.deltaY * ZOOM_PER_PX));
    const start = Math.max(first, Math.min(last - length, span[0] + share * (span[1] - span[0] - length)));
    setZoomed(length >= last - first ? null : { of: whole, span: [start, start + length] });
    pointed.value = null;
  };
  return (
    <svg
      width={width}
      height={height}
      class={onDrag ? "chart-drags" : undefined}
      onWheel={zoom}
      onPointerDown={(event) => {
        const [across, down, inside] = place(event);
        point(across, down, inside);
        if (!inside || event.button !== 0) return;
        from.current = across;
        if (onDrag) event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const [across, down, inside] = place(event);
        point(across, down, inside);
        if (from.current !== null) onDrag?.(drag(across), false);
      }}
      onPointerUp={(event) => {
        const [across] = place(event);
        const dragged = drag(across);
        if (from.current !== null && !dragged) onPick?.(plot.x.valueAt(across));
        from.current = null;
        onDrag?.(dragged, true);
      }}
      onPointerCancel={() => {
        from.current = null;
        onDrag?.(null, true);
      }}
      onPointerLeave={(event) => {
        // A finger that is lifted leaves, too: what it pointed at stays until it points elsewhere.
        if (event.pointerType !== "touch") pointed.value = null;
      }}
    >
      <Axes plot={plot} x={x} y={y} shown={span} left={left} top={top} />
      {/* An SVG of its own clips what is zoomed out of it at its sides. */}
      <svg x={left} width={room} height={height} overflow={shown ? "hidden" : "visible"}>
        <g transform={`translate(0 ${top})`}>
          <Mark pointed={pointed} />
          {drawn}
          {marked && (
            <rect
              class="chart-marked"
              x={plot.x.at(marked[0])}
              width={plot.x.at(marked[1]) - plot.x.at(marked[0])}
              height={inner}
            />
          )}
        </g>
      </svg>
    </svg>
  );
}

interface AxesProps {
  plot: Plot;
  x: Axis;
  y: Axis;
  shown: Span;
  left: number;
  top: number;
}

function Axes({ plot, x, y, shown, left, top }: AxesProps) {
  const { width, height } = plot;
  const columns = x.ticks(shown, width);
  return (
    <g transform={`translate(${left} ${top})`} class="chart-axes">
      {y.title && (
        <text x={-left} y={-12}>
          {y.title}
        </text>
      )}
      {y.ticks(y.span, height).map(({ value, label }) => (
        <g key={value} transform={`translate(0 ${plot.y.at(value)})`}>
          <line x2={width} />
          <text x={-8} dy="0.35em" text-anchor="end">
            {label}
          </text>
        </g>
      ))}
      <line class="chart-base" y1={height} y2={height} x2={width} />
      {columns.map(({ value, label }) => (
        <g key={value} transform={`translate(${plot.x.at(value)} ${height})`}>
          {x.logarithmic && <line y2={-height} />}
          {x.turned ? (
            <text transform={`rotate(${-TURNED_DEGREES})`} x={2} y={14} text-anchor="end">
              {label}
            </text>
          ) : (
            <text y={15} text-anchor="middle">
              {label}
            </text>
          )}
        </g>
      ))}
      {x.title && (
        <text x={width / 2} y={height + LABEL_PX + TITLE_PX - 4} text-anchor="middle">
          {x.title}
        </text>
      )}
    </g>
  );
}

/** What the tooltip is about, marked behind what is drawn. */
function Mark({ pointed }: { pointed: Signal<Pointed | null> }) {
  const { tip, plot } = pointed.value ?? {};
  if (!tip?.marked || !plot) return null;
  const [from, to] = tip.marked.map(plot.x.at) as [number, number];
  return from === to ? (
    <line class="chart-at" x1={from} x2={from} y2={plot.height} />
  ) : (
    <rect class="chart-band" x={from} width={to - from} height={plot.height} />
  );
}

/** Next to the pointer, within the chart where that is large enough. */
function TipBox({ pointed }: { pointed: Signal<Pointed | null> }) {
  const now = pointed.value;
  const shown = now !== null;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !now) return;
    const { clientWidth, clientHeight } = element.parentElement!;
    const beside = now.x + 16 + element.offsetWidth <= clientWidth ? now.x + 16 : now.x - 16 - element.offsetWidth;
    const within = (at: number, room: number): string => `${Math.max(0, Math.min(at, room))}px`;
    element.style.left = within(beside, clientWidth - element.offsetWidth);
    element.style.top = within(now.y + 8, clientHeight - element.offsetHeight);
  });
  useEffect(() => {
    if (!shown) return undefined;
    const hide = (event: Event): void => {
      if (!box.current?.parentElement?.contains(event.target as Node)) pointed.value = null;
    };
    document.addEventListener("pointerdown", hide);
    return () => document.removeEventListener("pointerdown", hide);
  }, [shown, pointed]);
  if (!now) return null;
  const { title, lines, note } = now.tip;
  return (
    <div class="chart-tip" ref={box}>
      <strong>{title}</strong>
      {lines.map(({ label, value, colour = "transparent" }) => (
        <div class="chart-tip-row" key={label}>
          <span class="swatch" style={{ background: colour }} />
          <span>{label}</span>
          <span class="chart-tip-value">{value}</span>
        </div>
      ))}
      {note && <div class="chart-tip-note">{note}</div>}
    </div>
  );
}
