/**
 * Recorded iterations in; stacked bars by time category out, with a line at the step without the profiler. Dragging over bars picks the range to aggregate, a click on one bar picks
 * that iteration; Ctrl and the wheel zoom. With the keyboard the arrow keys move over the bars, with Shift they extend the range,
 * Enter takes it and Escape goes back to all.
 */
import type { BarSeriesOption, LineSeriesOption, ScatterSeriesOption } from "echarts/charts";
import type { ECharts } from "echarts/core";
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Category, IterationBar, StepFigures } from "../../api/types";
import { useFile } from "../../api/useResource";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { Drawing } from "../../components/export/Drawing";
import { number } from "../../components/export/columns";
import type { Column } from "../../components/table/columns";
import { movedBy, spanOf, type Marked } from "./barKeys";
import { Chart, type Colour } from "../../components/chart/Chart";
import { isMerged, longestMarks, MERGED } from "../../components/chart/merged";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import type { IterationRange } from "../../state/profile";
import { themeSignal } from "../../state/theme";

interface IterationBarsProps {
  /** The title of a saved picture. */
  name: string;
  iterations: IterationBar[];
  categories: Category[];
  /** Keys of categories that do not apply to the recording, or are not wanted. Keep the same set between renderings. */
  hidden?: ReadonlySet<string>;
  /** What the categories are, which decides their colours. */
  context?: string;
  /** The step without the profiler, where a line shows it. */
  stepNs?: number | null;
  /** Null is all iterations. */
  onSelect: (range: IterationRange | null) => void;
  /** What stands below the bars. */
  children?: ComponentChildren;
}

const NONE: ReadonlySet<string> = new Set();
const FADED = 0.32;
const NS_PER_MS = 1e6;

/** Where the line at the step without the profiler is; null where that is the recorded step. */
export function stepLine(step: StepFigures): number | null {
  return step.source === "recorded" ? null : step.ms * NS_PER_MS;
}

/** Where the pointer is in a chart, in pixels. */
interface Pointed {
  offsetX: number;
  offsetY: number;
}

/** A shorter drag is a click. */
const LEAST_DRAG_PX = 4;
const WIDEST_BAR_PX = 56;
const TOP_PX = 12;

export function IterationBars(props: IterationBarsProps) {
  const { name, iterations, categories, hidden = NONE, children } = props;
  const columns = useMemo(() => columnsOf(categories, hidden, isMerged(iterations)), [categories, hidden, iterations]);
  return (
    <Drawing name={name} columns={columns} rows={iterations}>
      <Bars {...props} />
      {children}
    </Drawing>
  );
}

function columnsOf(
  categories: readonly Category[],
  hidden: ReadonlySet<string>,
  merged: boolean,
): Column<IterationBar>[] {
  return [
    number("Iteration", "count", (bar) => bar.number, "Its number, as the training counts it."),
    ...(merged ? MERGED : []),
    number("Duration", "ns", (bar) => bar.duration_ns, "Wall-clock time of the iteration."),
    ...categories.flatMap(({ key, label, definition, recorded }, index): Column<IterationBar>[] =>
      hidden.has(key)
        ? []
        : [number(label, "ns", (bar) => (recorded ? (bar.category_ns[index] ?? null) : null), definition)],
    ),
  ];
}

function Bars({ iterations, categories, hidden = NONE, context = "", stepNs = null, onSelect }: IterationBarsProps) {
  const theme = themeSignal.value;
  // The chart keeps its listeners while the component gets a new callback with each rendering.
  const select = useRef(onSelect);
  // An exported file has no other range to show.
  const fixed = useFile() !== null;
  select.current = fixed ? () => undefined : onSelect;
  const wired = useRef<ECharts | null>(null);
  const [marked, setMarked] = useState<Marked | null>(null);
  /** The bars under a drag. */
  const [dragged, setDragged] = useState<IterationRange | null>(null);

  const bars = useRef(iterations);
  bars.current = iterations;
  /** The iterations behind bars: a bar of a long recording stands for several. */
  const iterationsOf = ({ first, last }: IterationRange): IterationRange => ({
    first: bars.current[first]!.index,
    last: bars.current[last]!.last,
  });

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = iterations.findIndex((bar) => bar.selected);
    if (event.key === "Enter" || event.key === " ") {
      if (marked) onSelect(iterationsOf(spanOf(marked)));
      setMarked(null);
    } else if (event.key === "Escape") {
      if (!marked) onSelect(null);
      setMarked(null);
    } else {
      const next = movedBy(event.key, event.shiftKey, marked, first, iterations.length);
      if (!next) return;
      setMarked(next);
    }
    event.preventDefault();
  };

  const onReady = (chart: ECharts): void => {
    if (fixed || wired.current === chart) return;
    wired.current = chart;
    const drawing = chart.getZr();
    const inGrid = ({ offsetX, offsetY }: Pointed): boolean => chart.containPixel("grid", [offsetX, offsetY]);
    const barAt = (x: number): number => {
      const index = Math.round(chart.convertFromPixel({ xAxisIndex: 0 }, x) as number);
      return Math.max(0, Math.min(bars.current.length - 1, index));
    };
    let from: number | null = null;
    const span = (to: number): IterationRange | null => {
      if (from === null || Math.abs(to - from) < LEAST_DRAG_PX) return null;
      const [one, other] = [barAt(from), barAt(to)];
      return { first: Math.min(one, other), last: Math.max(one, other) };
    };
    drawing.on("mousedown", (event: Pointed) => {
      from = inGrid(event) ? event.offsetX : null;
    });
    // ECharts goes on saying where the pointer is when it leaves the chart with its button down.
    drawing.on("mousemove", ({ offsetX }: Pointed) => {
      if (from !== null) setDragged(span(offsetX));
    });
    drawing.on("mouseup", ({ offsetX }: Pointed) => {
      const picked = span(offsetX);
      from = null;
      setDragged(null);
      if (picked) select.current(iterationsOf(picked));
    });
    drawing.on("click", (event: Pointed) => {
      if (!inGrid(event)) return;
      const index = barAt(event.offsetX);
      select.current(iterationsOf({ first: index, last: index }));
    });
  };

  const shown = categories
    .map((category, index) => ({ category, index }))
    .filter(({ category }) => !hidden.has(category.key));
  const recorded = shown.filter(({ category }) => category.recorded);
  const span = marked && spanOf(marked);
  const merged = isMerged(iterations);
  return (
    <div
      class="bars-keys"
      role="group"
      data-testid="iteration-bars"
      {...(fixed
        ? { "aria-label": "Iterations" }
        : {
            tabIndex: 0,
            "aria-label":
              "Pick a range of iterations: arrow keys move, Shift extends, Enter takes the range, Escape goes back to all",
            onKeyDown,
          })}
      onBlur={() => setMarked(null)}
    >
      <Chart
        height={220}
        theme={theme}
        inputs={[iterations, categories, hidden, context, stepNs]}
        onReady={onReady}
        label={`Recorded time of ${(iterations[iterations.length - 1]?.last ?? -1) + 1} iterations by category${merged ? `, in ${iterations.length} bars` : ""}${stepNs === null ? "" : `; a line at ${formatNs(stepNs)}, the step without the profiler`}.`}
        option={(colour) => ({
          animation: false,
          grid: {
            left: 4,
            right: 12,
            top: TOP_PX,
            bottom: 4,
            outerBoundsMode: "same",
            outerBoundsContain: "axisLabel",
          },
          tooltip: {
            ...tooltipStyle(colour),
            trigger: "axis",
            axisPointer: { type: "shadow" },
            formatter: (points: { dataIndex: number }[]) => {
              const bar = iterations[points[0]!.dataIndex]!;
              const lines = shown.map(({ category, index }) => ({
                colour: colour(colourProperty(category.key, index, context)),
                label: category.label,
                value: category.recorded ? formatNs(bar.category_ns[index] ?? null) : "not recorded",
              }));
              return tooltipElement(titleOf(bar), lines);
            },
          },
          dataZoom: [
            {
              type: "inside",
              xAxisIndex: 0,
              zoomOnMouseWheel: "ctrl",
              moveOnMouseMove: false,
              moveOnMouseWheel: false,
            },
          ],
          xAxis: [
            {
              type: "category",
              data: iterations.map((bar) => String(bar.number)),
              axisTick: { show: false },
              axisLine: { lineStyle: { color: colour("--line") } },
              axisLabel: { color: colour("--muted"), hideOverlap: true },
            },
            // The line at the step reaches from side to side, not from the first bar's middle to the last one's.
            { type: "value", show: false, min: 0, max: 1, axisPointer: { show: false, triggerTooltip: false } },
          ],
          yAxis: {
            type: "value",
            axisLine: { show: false },
            axisTick: { show: false },
            axisLabel: { color: colour("--muted"), formatter: (value: number) => formatNs(value) },
            splitLine: { lineStyle: { color: colour("--line-soft") } },
          },
          series: recorded
            .map<BarSeriesOption | LineSeriesOption | ScatterSeriesOption>(({ category, index }) => ({
              type: "bar",
              stack: "all",
              name: category.label,
              barMaxWidth: WIDEST_BAR_PX,
              barCategoryGap: iterations.length > 100 ? "0%" : "18%",
              itemStyle: { color: colour(colourProperty(category.key, index, context)) },
              emphasis: { disabled: true },
              data: iterations.map((bar) => ({
                value: bar.category_ns[index] ?? 0,
                itemStyle: { opacity: bar.selected ? 1 : FADED },
              })),
            }))
            .concat(merged ? [longestMarks(iterations, colour("--text"))] : [])
            .concat(stepNs === null ? [] : [lineAt(stepNs, colour)]),
        })}
      />
      <Span chart={wired.current} bars={iterations.length} span={span ?? dragged} />
      {stepNs !== null && (
        <p class="step-line muted small">
          <span class="step-line-mark" aria-hidden="true" /> {formatNs(stepNs)} without the profiler
        </p>
      )}
      <p class="hidden" role="status" data-testid="iteration-bars-marked">
        {span &&
          `Iterations ${iterations[span.first]?.number} to ${iterations[span.last]?.last_number}; Enter takes them.`}
      </p>
    </div>
  );
}

interface SpanProps {
  chart: ECharts | null;
  bars: number;
  span: IterationRange | null;
}

/** Marks bars of the chart. */
function Span({ chart, bars, span }: SpanProps) {
  if (!chart || !span) return null;
  const centre = (bar: number): number => chart.convertToPixel({ xAxisIndex: 0 }, bar) as number;
  const half = (bars > 1 ? centre(1) - centre(0) : WIDEST_BAR_PX) / 2;
  const left = centre(span.first) - half;
  return (
    <div
      class="bars-span"
      aria-hidden="true"
      style={{
        left: `${left}px`,
        width: `${centre(span.last) + half - left}px`,
        top: `${TOP_PX}px`,
        height: `${(chart.convertToPixel({ yAxisIndex: 0 }, 0) as number) - TOP_PX}px`,
      }}
    />
  );
}

function lineAt(stepNs: number, colour: Colour): LineSeriesOption {
  return {
    type: "line",
    name: "step",
    xAxisIndex: 1,
    silent: true,
    symbol: "none",
    lineStyle: { color: colour("--text"), type: "dashed", width: 1 },
    data: [
      [0, stepNs],
      [1, stepNs],
    ],
  };
}

/** "Iteration 3 (index 0): 146 ms", or the mean of several with the bounds of single ones. */
function titleOf(bar: IterationBar): string {
  if (bar.last === bar.index) return `Iteration ${bar.number} (index ${bar.index}): ${formatNs(bar.duration_ns)}`;
  return `Iterations ${bar.number}–${bar.last_number} (index ${bar.index}–${bar.last}): ${formatNs(bar.duration_ns)} on average, ${formatNs(bar.shortest_ns)} to ${formatNs(bar.longest_ns)}`;
}
