/**
 * The moments of the curve in; areas by category, stacked up to what is allocated (one area where categories are unknown),
 * with the reserved memory and the device's own as lines out. Each moment holds until the next, and the tooltip gives its
 * bytes as recorded.
 */
import { useMemo } from "preact/hooks";
import type { MemoryCategory, MemoryCurve as Curve, MemoryIteration, MemoryMoment } from "../../api/types";
import { number } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { along, stepped } from "../../components/chart/axis";
import { Chart, type Plot, type Tip } from "../../components/chart/Chart";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatBytes } from "../../format/number";
import { exactUnit } from "../../format/unit";
import { byteStep, drawnLimit, iterationAt, labelledEvery, momentAt, stackedUp, stepsPath } from "./curve";

interface MemoryCurveProps {
  curve: Curve;
  categories: MemoryCategory[];
  iterations: MemoryIteration[];
  peak: MemoryMoment;
  /** Memory of the device, null where it is unknown. */
  limit: number | null;
}

export function MemoryCurve(props: MemoryCurveProps) {
  const { curve, categories } = props;
  const columns = useMemo(() => momentColumns(curve, categories), [curve, categories]);
  const rows = useMemo(() => curve.time_ns.map((_, at) => at), [curve]);
  return (
    <Drawing
      name={curve.categories.length > 0 ? "Allocated memory by category" : "Allocated memory"}
      columns={columns}
      rows={rows}
    >
      <Areas {...props} />
    </Drawing>
  );
}

/** A row is a moment, by its place in the curve. */
function momentColumns(curve: Curve, categories: readonly MemoryCategory[]): Column<number>[] {
  return [
    number(
      "Time",
      "ns",
      (at) => curve.time_ns[at] ?? null,
      "After the start of the first selected iteration; the bytes hold until the next moment.",
    ),
    number("Allocated", "bytes", (at) => curve.allocated[at] ?? null),
    ...(curve.reserved.length > 0 ? [number<number>("Reserved", "bytes", (at) => curve.reserved[at] ?? null)] : []),
    ...categories.flatMap(({ label, definition }, index) =>
      (curve.categories[index]?.length ?? 0) > 0
        ? [number<number>(label, "bytes", (at) => curve.categories[index]![at] ?? null, definition)]
        : [],
    ),
  ];
}

/** More lines than these would hide the curve. */
const MOST_LINES = 60;

function Areas({ curve, categories, iterations, peak, limit }: MemoryCurveProps) {
  const known = categories
    .map(({ key, label }, index) => ({
      label,
      colour: colourOf(key, 0, "memory"),
      values: curve.categories[index] ?? [],
    }))
    .filter(({ values }) => values.length > 0);
  const highest = Math.max(...curve.allocated, ...curve.reserved);
  const line = drawnLimit(limit, highest);
  const draw = (plot: Plot) => {
    const areas = known.length > 0 ? known : [{ colour: colourOf("allocated", 0, "memory"), values: curve.allocated }];
    const steps = (values: readonly number[]): string => stepsPath(plot, curve.time_ns, values, curve.stop_ns);
    const every = labelledEvery(iterations.length);
    return (
      <>
        {/* Each area reaches down to 0 and the next one covers its lower part: areas that only touch would leave light
            seams where a moment is narrower than a pixel. */}
        {stackedUp(areas.map(({ values }) => values))
          .map((tops, place) => {
            const { colour } = areas[place]!;
            return (
              <path key={colour} d={`${steps(tops)}V${plot.height}H0z`} style={{ fill: colour, stroke: colour }} />
            );
          })
          .reverse()}
        {iterations.map(({ start_ns, number: name }, index) => (
          <g key={start_ns} transform={`translate(${plot.x.at(start_ns)} 0)`}>
            {iterations.length <= MOST_LINES && <line class="memory-iteration" y2={plot.height} />}
            {index % every === 0 && <text y={-5}>{name}</text>}
          </g>
        ))}
        {curve.reserved.length > 0 && <path class="memory-reserved" d={steps(curve.reserved)} />}
        {line !== null && (
          <>
            <line class="memory-limit" x2={plot.width} y1={plot.y.at(line)} y2={plot.y.at(line)} />
            <text class="memory-limit" x={plot.width} y={plot.y.at(line) - 5} text-anchor="end">
              device: {formatBytes(line)}
            </text>
          </>
        )}
        <circle class="memory-most" cx={plot.x.at(peak.time_ns)} cy={plot.y.at(peak.allocated_bytes)} r={4} />
      </>
    );
  };
  const tip = (plot: Plot, x: number): Tip => {
    const at = momentAt(curve.time_ns, plot.x.valueAt(x));
    const time = curve.time_ns[at]!;
    const lines = [
      ...known.map(({ label, colour, values }) => ({ colour, label, value: formatBytes(values[at]!) })),
      { label: "Allocated", value: exactUnit(curve.allocated[at]!, "bytes") },
      ...(curve.reserved.length > 0
        ? [{ colour: "var(--text)", label: "Reserved", value: formatBytes(curve.reserved[at]!) }]
        : []),
    ];
    return {
      title: `Iteration ${iterationAt(iterations, time)}, ${formatNs(time)}`,
      lines: lines.reverse(),
      marked: [time, time],
    };
  };
  return (
    <Chart
      height={300}
      top={22}
      right={16}
      label={`Allocated memory over ${iterations.length} iterations${known.length > 0 ? " by category" : ""}; most, ${formatBytes(peak.allocated_bytes)}, in iteration ${peak.iteration_number}. The tables below hold the values.`}
      x={along([0, curve.stop_ns], formatNs)}
      y={() => stepped(Math.max(highest, line ?? 0), byteStep(Math.max(highest, line ?? 0)), formatBytes)}
      draw={draw}
      inputs={[curve, categories, iterations, peak, limit]}
      tip={tip}
      zooms
    />
  );
}
