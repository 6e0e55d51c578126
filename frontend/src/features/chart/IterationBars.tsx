/**
 * Recorded iterations in; stacked bars by time category out, with a line at the step without the profiler. Dragging over bars picks the range to aggregate, a click on one bar picks
 * that iteration; Ctrl and the wheel zoom. With the keyboard the arrow keys move over the bars, with Shift they extend the range,
 * Enter takes it and Escape goes back to all.
 */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Category, IterationBar, StepFigures } from "../../api/types";
import { useFile } from "../../api/useResource";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { Drawing } from "../../components/export/Drawing";
import { number } from "../../components/export/columns";
import type { Column } from "../../components/table/columns";
import { movedBy, spanOf, type Marked } from "./barKeys";
import { places, type Span, upwards } from "../../components/chart/axis";
import { Bars, LongestMarks } from "../../components/chart/Bars";
import { Chart, type Plot, type Tip } from "../../components/chart/Chart";
import { isMerged, MERGED } from "../../components/chart/merged";
import type { IterationRange } from "../../state/profile";

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
const NS_PER_MS = 1e6;

/** Where the line at the step without the profiler is; null where that is the recorded step. */
export function stepLine(step: StepFigures): number | null {
  return step.source === "recorded" ? null : step.ms * NS_PER_MS;
}

const WIDEST_BAR_PX = 56;

export function IterationBars(props: IterationBarsProps) {
  const { name, iterations, categories, hidden = NONE, children } = props;
  const columns = useMemo(() => columnsOf(categories, hidden, isMerged(iterations)), [categories, hidden, iterations]);
  return (
    <Drawing name={name} columns={columns} rows={iterations}>
      <PickedBars {...props} />
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

function PickedBars({
  iterations,
  categories,
  hidden = NONE,
  context = "",
  stepNs = null,
  onSelect,
}: IterationBarsProps) {
  // An exported file has no other range to show.
  const fixed = useFile() !== null;
  const [marked, setMarked] = useState<Marked | null>(null);
  /** The bars under a drag. */
  const [dragged, setDragged] = useState<IterationRange | null>(null);
  const shown = categories
    .map((category, index) => ({ category, index, colour: colourOf(category.key, index, context) }))
    .filter(({ category }) => !hidden.has(category.key));
  const merged = isMerged(iterations);
  const span = marked && spanOf(marked);

  /** Takes the iterations behind bars: a bar of a long recording stands for several. */
  const take = ({ first, last }: IterationRange): void =>
    onSelect({ first: iterations[first]!.index, last: iterations[last]!.last });
  const barAt = (value: number): number => Math.max(0, Math.min(iterations.length - 1, Math.round(value)));
  const onDrag = (ends: Span | null, done: boolean): void => {
    const [one, other] = (ends ?? [0, 0]).map(barAt) as [number, number];
    const picked = ends && { first: Math.min(one, other), last: Math.max(one, other) };
    setDragged(done ? null : picked);
    if (done && picked) take(picked);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = iterations.findIndex((bar) => bar.selected);
    if (event.key === "Enter" || event.key === " ") {
      if (span) take(span);
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

  const draw = (plot: Plot) => (
    <>
      <Bars
        plot={plot}
        parts={shown
          .filter(({ category }) => category.recorded)
          .map(({ index, colour }) => ({ colour, values: iterations.map((bar) => bar.category_ns[index] ?? 0) }))}
        faded={(place) => !iterations[place]!.selected}
        widest={WIDEST_BAR_PX}
      />
      {merged && <LongestMarks plot={plot} bars={iterations} />}
      {stepNs !== null && <line class="chart-dashed" x2={plot.width} y1={plot.y.at(stepNs)} y2={plot.y.at(stepNs)} />}
    </>
  );
  const tip = (plot: Plot, x: number): Tip | null => {
    const at = barAt(plot.x.valueAt(x));
    const bar = iterations[at];
    return bar
      ? {
          title: titleOf(bar),
          marked: [at - 0.5, at + 0.5],
          lines: shown.map(({ category, index, colour }) => ({
            colour,
            label: category.label,
            value: category.recorded ? formatNs(bar.category_ns[index] ?? null) : "not recorded",
          })),
        }
      : null;
  };
  const highest = (): number[] => [
    ...iterations.map((bar) => shown.reduce((sum, { index }) => sum + (bar.category_ns[index] ?? 0), 0)),
    ...(merged ? iterations.map((bar) => bar.longest_ns) : []),
    stepNs ?? 0,
  ];
  const mark = span ?? dragged;
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
        label={`Recorded time of ${(iterations[iterations.length - 1]?.last ?? -1) + 1} iterations by category${merged ? `, in ${iterations.length} bars` : ""}${stepNs === null ? "" : `; a line at ${formatNs(stepNs)}, the step without the profiler`}.`}
        x={places(iterations.map((bar) => String(bar.number)))}
        y={(height) => upwards(highest(), height, formatNs)}
        draw={draw}
        inputs={[iterations, categories, hidden, context, stepNs]}
        tip={tip}
        zooms
        marked={mark && [mark.first - 0.5, mark.last + 0.5]}
        {...(fixed
          ? {}
          : {
              onDrag,
              onPick: (value) => {
                const at = barAt(value);
                take({ first: at, last: at });
              },
            })}
      />
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

/** "Iteration 3: 146 ms", or the mean of several with the bounds of single ones. */
function titleOf(bar: IterationBar): string {
  if (bar.last === bar.index) return `Iteration ${bar.number}: ${formatNs(bar.duration_ns)}`;
  return `Iterations ${bar.number}–${bar.last_number}: ${formatNs(bar.duration_ns)} on average, ${formatNs(bar.shortest_ns)} to ${formatNs(bar.longest_ns)}`;
}
