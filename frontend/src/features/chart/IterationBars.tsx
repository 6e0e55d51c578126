/**
 * Recorded iterations in; stacked bars by time category out, with a line at the step without the profiler. Dragging over bars picks the range to aggregate, a click on one bar picks
 * that iteration; Ctrl and the wheel zoom. With the keyboard the arrow keys move over the bars, with Shift they extend the range,
 * Enter takes it and Escape goes back to all.
 */
import type { BarSeriesOption, ScatterSeriesOption } from "echarts/charts";
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

/** ECharts' event of a finished drag; `coordRange` holds indices of bars. */
interface BrushEnd {
  areas: { coordRange?: [number, number] }[];
}

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

  const bars = useRef(iterations);
  bars.current = iterations;
  /** The iterations behind bars: a bar of a long recording stands for several. */
  const iterationsOf = ({ first, last }: IterationRange): IterationRange => ({
    first: bars.current[first]!.index,
    last: bars.current[last]!.last,
  });

  const mark = (next: Marked | null): void => {
    setMarked(next);
    const span = next && spanOf(next);
    wired.current?.dispatchAction({
      type: "brush",
      areas: span ? [{ brushType: "lineX", xAxisIndex: 0, coordRange: [span.first, span.last] }] : [],
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = iterations.findIndex((bar) => bar.selected);
    if (event.key === "Enter" || event.key === " ") {
      if (marked) onSelect(iterationsOf(spanOf(marked)));
      mark(null);
    } else if (event.key === "Escape") {
      if (!marked) onSelect(null);
      mark(null);
    } else {
      const next = movedBy(event.key, event.shiftKey, marked, first, iterations.length);
      if (!next) return;
      mark(next);
    }
    event.preventDefault();
  };

  const onReady = (chart: ECharts): void => {
    if (fixed) return;
    chart.dispatchAction({
      type: "takeGlobalCursor",
      key: "brush",
      brushOption: { brushType: "lineX", brushMode: "single" },
    });
    if (wired.current === chart) return;
    wired.current = chart;
    const pick = (low: number, high: number): void => {
      const clamp = (index: number): number => Math.max(0, Math.min(bars.current.length - 1, index));
      select.current(iterationsOf({ first: clamp(low), last: clamp(high) }));
    };
    chart.on("brushEnd", (event: unknown) => {
      const range = (event as BrushEnd).areas[0]?.coordRange;
      if (!range) return;
      pick(Math.min(...range), Math.max(...range));
      chart.dispatchAction({ type: "brush", areas: [] });
    });
    chart.getZr().on("click", ({ offsetX, offsetY }: { offsetX: number; offsetY: number }) => {
      if (!chart.containPixel("grid", [offsetX, offsetY])) return;
      const place = chart.convertFromPixel({ seriesIndex: 0 }, [offsetX, offsetY]) as number[];
      const index = Math.round(place[0] ?? -1);
      if (index >= 0) pick(index, index);
    });
  };

  const shown = categories
    .map((category, index) => ({ category, index }))
    .filter(({ category }) => !hidden.has(category.key));
  const recorded = shown.filter(({ category }) => category.recorded);
  const span = marked && spanOf(marked);
  const merged = isMerged(iterations);
  const highest = Math.max(...iterations.map((bar) => bar.longest_ns));
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
      onBlur={() => mark(null)}
    >
      <Chart
        height={220}
        theme={theme}
        inputs={[iterations, categories, hidden, context, stepNs]}
        onReady={onReady}
        label={`Recorded time of ${(iterations[iterations.length - 1]?.last ?? -1) + 1} iterations by category${merged ? `, in ${iterations.length} bars` : ""}${stepNs === null ? "" : `; a line at ${formatNs(stepNs)}, the step without the profiler`}.`}
        option={(colour) => ({
          animation: false,
          grid: { left: 4, right: 12, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
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
          brush: {
            xAxisIndex: 0,
            brushStyle: { color: colour("--brush"), borderColor: colour("--accent"), borderWidth: 1 },
            throttleType: "debounce",
            throttleDelay: 80,
          },
          dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: false, moveOnMouseWheel: false }],
          xAxis: {
            type: "category",
            data: iterations.map((bar) => String(bar.number)),
            axisTick: { show: false },
            axisLine: { lineStyle: { color: colour("--line") } },
            axisLabel: { color: colour("--muted"), hideOverlap: true },
          },
          yAxis: {
            type: "value",
            // ECharts leaves lines out of the axis' extent.
            ...(stepNs !== null && stepNs > highest ? { max: stepNs * 1.05 } : {}),
            axisLabel: { color: colour("--muted"), formatter: (value: number) => formatNs(value) },
            splitLine: { lineStyle: { color: colour("--line-soft") } },
          },
          series: recorded
            .map<BarSeriesOption | ScatterSeriesOption>(({ category, index }) => ({
              type: "bar",
              stack: "all",
              name: category.label,
              barMaxWidth: 56,
              barCategoryGap: iterations.length > 100 ? "0%" : "18%",
              itemStyle: { color: colour(colourProperty(category.key, index, context)) },
              emphasis: { disabled: true },
              data: iterations.map((bar) => ({
                value: bar.category_ns[index] ?? 0,
                itemStyle: { opacity: bar.selected ? 1 : FADED },
              })),
            }))
            .map((series, index) =>
              index === 0 && stepNs !== null ? { ...series, markLine: lineAt(stepNs, colour) } : series,
            )
            .concat(merged ? [longestMarks(iterations, colour("--text"))] : []),
        })}
      />
      {stepNs !== null && (
        <p class="step-line muted small">
          <span class="step-line-mark" aria-hidden="true" /> {formatNs(stepNs)}, the step without the profiler
        </p>
      )}
      <p class="hidden" role="status" data-testid="iteration-bars-marked">
        {span &&
          `Iterations ${iterations[span.first]?.number} to ${iterations[span.last]?.last_number}; Enter takes them.`}
      </p>
    </div>
  );
}

function lineAt(stepNs: number, colour: Colour): NonNullable<BarSeriesOption["markLine"]> {
  return {
    silent: true,
    animation: false,
    symbol: "none",
    lineStyle: { color: colour("--text"), type: "dashed", width: 1 },
    label: { show: false },
    data: [{ yAxis: stepNs }],
  };
}

/** "Iteration 3 (index 0): 146 ms", or the mean of several with the bounds of single ones. */
function titleOf(bar: IterationBar): string {
  if (bar.last === bar.index) return `Iteration ${bar.number} (index ${bar.index}): ${formatNs(bar.duration_ns)}`;
  return `Iterations ${bar.number}–${bar.last_number} (index ${bar.index}–${bar.last}): ${formatNs(bar.duration_ns)} on average, ${formatNs(bar.shortest_ns)} to ${formatNs(bar.longest_ns)}`;
}
