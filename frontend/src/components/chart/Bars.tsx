/** Stacked bars at places of an axis. One path for each colour: a thousand bars of ten parts are drawn at once. */
import type { Plot } from "./Chart";
import type { Merged } from "./merged";

export interface BarPart {
  /** A CSS value. */
  colour: string;
  /** One value for each place. */
  values: readonly number[];
}

interface BarsProps {
  plot: Plot;
  parts: readonly BarPart[];
  /** Whether a bar is drawn lighter. */
  faded?: (place: number) => boolean;
  /** The widest bar (pixels). */
  widest: number;
}

/** From here on bars touch, so that they are as wide as can be. */
const MANY = 100;

export function Bars({ plot, parts, faded = () => false, widest }: BarsProps) {
  const bars = parts[0]?.values.length ?? 0;
  const room = plot.x.at(1) - plot.x.at(0);
  const width = Math.min(widest, room * (bars > MANY ? 1 : 0.82));
  const below = Array<number>(bars).fill(0);
  return (
    <>
      {parts.map(({ colour, values }, index) => {
        const paths = ["", ""];
        values.forEach((value, place) => {
          if (!(value > 0)) return;
          const [bottom, top] = [plot.y.at(below[place]!), plot.y.at(below[place]! + value)];
          below[place]! += value;
          const left = plot.x.at(place) - width / 2;
          paths[Number(faded(place))] +=
            `M${left.toFixed(2)} ${bottom.toFixed(2)}h${width.toFixed(2)}V${top.toFixed(2)}h${(-width).toFixed(2)}z`;
        });
        return paths.map(
          (path, light) =>
            path && (
              <path
                key={`${index} ${light}`}
                d={path}
                style={{ fill: colour }}
                class={light ? "chart-faded" : undefined}
              />
            ),
        );
      })}
    </>
  );
}

/** A mark at the longest iteration of each bar, so that a single slow one is seen. */
export function LongestMarks({ plot, bars }: { plot: Plot; bars: readonly Merged[] }) {
  const path = bars.map(({ longest_ns }, place) => `M${plot.x.at(place) - 1.5} ${plot.y.at(longest_ns) - 1}h3v2h-3z`);
  return <path class="chart-longest" d={path.join("")} />;
}
