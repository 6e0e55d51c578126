/**
 * Lines over the values of a fact, at equal distances because batch sizes double; bars where the values have no order, points on a
 * logarithmic axis where these differ by much.
 */
import type { SweepMark, SweepPage } from "../../api/types";
import { decades, decadesAround, places, upwards } from "../../components/chart/axis";
import { Chart, type Plot, type Tip } from "../../components/chart/Chart";
import { formatUnit } from "../../format/unit";
import { Drawing } from "../../components/export/Drawing";
import { usePoints } from "./SweepPoints";
import { type Dash, type LineStyle, lineStyles, needsLogarithm } from "./sweep";

/** Bars have no dashes. */
const BAR_OPACITY: Record<Dash, number> = { solid: 1, dashed: 0.65, dotted: 0.4 };

export function SweepChart({ data }: { data: SweepPage }) {
  const { rows, columns } = usePoints(data);
  return (
    <Drawing name={`${data.measure_label} over ${data.over_label}`} columns={columns} rows={rows}>
      <Lines data={data} />
    </Drawing>
  );
}

function Lines({ data }: { data: SweepPage }) {
  const named = data.curves.length > 1;
  const styles = lineStyles(data.curves);
  const logarithmic = needsLogarithm(data.curves, data.ordered);
  const bars = !data.ordered && !logarithmic;
  const values = data.curves.flatMap(({ marks }) => marks.map(({ value }) => value));
  const label = (value: number): string => formatUnit(value, data.unit);
  const draw = (plot: Plot) =>
    data.curves.map(({ label: name, marks }, index) =>
      bars ? (
        <Group key={name} plot={plot} marks={marks} place={index} of={data.curves.length} style={styles[index]!} />
      ) : (
        <Line
          key={name}
          plot={plot}
          marks={marks}
          place={index}
          of={data.curves.length}
          joined={!logarithmic}
          style={styles[index]!}
        />
      ),
    );
  const tip = (plot: Plot, x: number): Tip => {
    const at = Math.max(0, Math.min(data.positions.length - 1, Math.round(plot.x.valueAt(x))));
    return {
      title: `${data.over_label}: ${data.positions[at] ?? ""}`,
      marked: data.ordered ? [at, at] : [at - 0.5, at + 0.5],
      lines: data.curves.flatMap((curve, index) => {
        const mark = curve.marks.find((candidate) => candidate.position === at);
        if (!mark) return [];
        const value = `${mark.estimated ? "~" : ""}${label(mark.value)}`;
        return [{ colour: styles[index]!.colour, label: curve.label, value }];
      }),
    };
  };
  const turned = data.positions.some((text) => text.length > 8);
  return (
    <>
      <Chart
        height={340}
        top={logarithmic ? 28 : 16}
        right={20}
        label={`${data.measure_label} over ${data.over_label}: ${data.curves.length} ${data.ordered ? "lines" : logarithmic ? "points for each" : "bars for each"}; the table below holds the values.`}
        x={places(data.positions, turned)}
        y={(height) =>
          logarithmic
            ? { ...decades(decadesAround(values), label, true), title: "logarithmic" }
            : upwards(values, height, label)
        }
        draw={draw}
        inputs={[data]}
        tip={tip}
      />
      {named && (
        <ul class="sweep-lines" data-testid="sweep-lines">
          {data.curves.map((curve, index) => {
            const { colour, dash } = styles[index]!;
            const swatch = logarithmic ? (
              <svg width="12" height="12" viewBox="-1.2 -1.2 2.4 2.4" aria-hidden="true">
                <path d={SYMBOL_PATHS[POINTS[dash]]} style={{ fill: colour }} />
              </svg>
            ) : (
              <span class="line-swatch" style={{ borderColor: colour, borderTopStyle: dash }} />
            );
            return (
              <li key={curve.label}>
                {swatch} {curve.label}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}

interface CurveProps {
  plot: Plot;
  marks: readonly SweepMark[];
  /** Among all curves. */
  place: number;
  of: number;
  style: LineStyle;
}

const WIDEST_BAR_PX = 36;

/** A bar for each value, next to those of the other curves. */
function Group({ plot, marks, place, of, style }: CurveProps) {
  const width = Math.min(WIDEST_BAR_PX, (0.8 * (plot.x.at(1) - plot.x.at(0))) / of);
  return (
    <g style={{ fill: style.colour, opacity: BAR_OPACITY[style.dash] }}>
      {marks.map(({ position, value }) => (
        <rect
          key={position}
          x={plot.x.at(position) + (place - of / 2) * width}
          y={plot.y.at(value)}
          width={Math.max(1, width - 1)}
          height={Math.max(0, plot.height - plot.y.at(value))}
        />
      ))}
    </g>
  );
}

/**
 * A symbol at each value, and a line through them. No line leads from one model to another: symbols without one lie next to
 * each other, so that none hides another.
 */
function Line({ plot, marks, place, of, joined, style }: CurveProps & { joined: boolean }) {
  const { colour, dash } = style;
  const symbol = joined ? style.symbol : POINTS[dash];
  const apart = joined ? 0 : Math.min(14, (0.8 * (plot.x.at(1) - plot.x.at(0))) / of);
  const at = [...marks]
    .sort((one, other) => one.position - other.position)
    .map(({ position, value }) => [plot.x.at(position) + (place - (of - 1) / 2) * apart, plot.y.at(value)] as const);
  const size = joined ? 3.5 : 6;
  return (
    <g>
      {joined && (
        <polyline
          class={`sweep-line sweep-${dash}`}
          points={at.map((point) => point.join()).join(" ")}
          // Wider below: a line that lies under another shows on both sides of it.
          style={{ stroke: colour, strokeWidth: 2 + 2 * Math.max(0, 2 - place) }}
        />
      )}
      {at.map(([x, y]) => (
        <path
          key={x}
          class="sweep-point"
          d={SYMBOL_PATHS[symbol]}
          style={{ fill: colour }}
          transform={`translate(${x} ${y}) scale(${size})`}
        />
      ))}
    </g>
  );
}

/** Points without lines have no dashes: their symbols differ instead. */
const POINTS: Record<Dash, LineStyle["symbol"]> = { solid: "circle", dashed: "rect", dotted: "triangle" };

/** Around the middle, from -1 to 1. */
const SYMBOL_PATHS: Record<LineStyle["symbol"], string> = {
  circle: "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0z",
  rect: "M-1-1h2v2h-2z",
  triangle: "M0-1L1 1H-1z",
  diamond: "M0-1.2L1 0L0 1.2L-1 0z",
};
