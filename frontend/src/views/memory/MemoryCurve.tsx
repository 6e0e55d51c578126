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
import { Chart } from "../../components/chart/Chart";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatBytes } from "../../format/number";
import { exactUnit } from "../../format/unit";
import { byteStep, drawnLimit, iterationAt, labelledEvery, momentsToDraw, stackedUp } from "./curve";
import { themeSignal } from "../../state/theme";

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

function Areas({ curve, categories, iterations, peak, limit }: MemoryCurveProps) {
  const theme = themeSignal.value;
  const known = categories
    .map((category, index) => ({
      label: category.label,
      property: colourProperty(category.key, 0, "memory"),
      values: curve.categories[index] ?? [],
    }))
    .filter(({ values }) => values.length > 0);
  const areas =
    known.length > 0
      ? known
      : [{ label: "Allocated", property: colourProperty("allocated", 0, "memory"), values: curve.allocated }];
  const highest = Math.max(...curve.allocated, ...curve.reserved);
  const line = drawnLimit(limit, highest);
  const step = byteStep(Math.max(highest, line ?? 0));
  const every = labelledEvery(iterations.length);
  return (
    <Chart
      height={300}
      theme={theme}
      inputs={[curve, categories, iterations, limit]}
      label={`Allocated memory over ${iterations.length} iterations${known.length > 0 ? " by category" : ""}; most, ${formatBytes(peak.allocated_bytes)}, in iteration ${peak.iteration_number}. The tables below hold the values.`}
      option={(colour) => ({
        animation: false,
        grid: { left: 4, right: 16, top: 8, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
        tooltip: {
          ...tooltipStyle(colour),
          trigger: "axis",
          axisPointer: { type: "line", snap: true, lineStyle: { color: colour("--muted") } },
          formatter: (points: { dataIndex: number }[]) => {
            const at = Math.min(points[0]!.dataIndex, curve.time_ns.length - 1);
            const time = curve.time_ns[at]!;
            const lines = known.map(({ label, property, values }) => ({
              colour: colour(property),
              label,
              value: formatBytes(values[at]!),
            }));
            lines.push({ colour: "transparent", label: "Allocated", value: exactUnit(curve.allocated[at]!, "bytes") });
            if (curve.reserved.length > 0)
              lines.push({ colour: colour("--text"), label: "Reserved", value: formatBytes(curve.reserved[at]!) });
            return tooltipElement(`Iteration ${iterationAt(iterations, time)}, ${formatNs(time)}`, lines.reverse());
          },
        },
        dataZoom: [
          {
            type: "inside",
            xAxisIndex: [0, 1],
            zoomOnMouseWheel: "ctrl",
            moveOnMouseMove: false,
            moveOnMouseWheel: false,
            filterMode: "none",
          },
        ],
        xAxis: [
          {
            type: "value",
            min: 0,
            max: curve.stop_ns,
            axisTick: { show: false },
            axisLine: { lineStyle: { color: colour("--line") } },
            axisLabel: {
              color: colour("--muted"),
              hideOverlap: true,
              showMaxLabel: false,
              formatter: (value: number) => formatNs(value),
            },
            splitLine: { show: false },
          },
          // Above: where iterations begin, with the numbers of some.
          {
            type: "value",
            position: "top",
            min: 0,
            max: curve.stop_ns,
            axisPointer: { show: false, triggerTooltip: false },
            axisTick: { show: false, customValues: iterations.map(({ start_ns }) => start_ns) },
            axisLine: { show: false },
            axisLabel: {
              color: colour("--muted"),
              customValues: iterations.filter((_, index) => index % every === 0).map(({ start_ns }) => start_ns),
              formatter: (value: number) => String(iterations.find(({ start_ns }) => start_ns === value)?.number ?? ""),
              margin: 4,
              align: "left",
            },
            splitLine: {
              show: iterations.length <= 60,
              lineStyle: { color: colour("--muted"), width: 1, type: [2, 3], opacity: 0.9 },
            },
            z: 3,
          },
        ],
        yAxis: {
          type: "value",
          min: 0,
          max: Math.ceil(Math.max(highest, line ?? 0) / step) * step,
          interval: step,
          axisLine: { show: false },
          axisTick: { show: false },
          axisLabel: { color: colour("--muted"), formatter: (value: number) => formatBytes(value) },
          splitLine: { lineStyle: { color: colour("--line-soft") } },
        },
        series: [
          // Each area reaches down to 0 and the next one covers its lower part: areas that only touch would leave light
          // seams where a moment is narrower than a pixel.
          ...stackedUp(areas.map(({ values }) => values))
            .map((tops, place) => ({
              type: "line",
              name: areas[place]!.label,
              step: "end",
              symbol: "none",
              silent: true,
              lineStyle: { width: 1, color: colour(areas[place]!.property) },
              areaStyle: { color: colour(areas[place]!.property), opacity: 1 },
              emphasis: { disabled: true },
              data: momentsToDraw(curve.time_ns, tops, curve.stop_ns),
            }))
            .reverse(),
          {
            type: "line",
            name: "Reserved",
            step: "end",
            symbol: "none",
            silent: true,
            lineStyle: { color: colour("--text"), width: 1.5, type: [5, 3] },
            data: curve.reserved.length > 0 ? momentsToDraw(curve.time_ns, curve.reserved, curve.stop_ns) : [],
          },
          {
            type: "line",
            name: "Peak",
            symbol: "circle",
            symbolSize: 8,
            silent: true,
            tooltip: { show: false },
            itemStyle: { color: colour("--text"), borderColor: colour("--surface"), borderWidth: 2 },
            data: [[peak.time_ns, peak.allocated_bytes]],
            z: 5,
          },
          // Draws nothing: an axis without a series is not drawn.
          { type: "line", xAxisIndex: 1, data: [], silent: true },
          ...(line === null
            ? []
            : [
                {
                  type: "line",
                  name: "Device",
                  symbol: "none",
                  silent: true,
                  tooltip: { show: false },
                  lineStyle: { color: colour("--bad"), width: 1.5 },
                  data: [
                    [0, line],
                    {
                      value: [curve.stop_ns, line],
                      symbol: "circle",
                      symbolSize: 0.01,
                      label: {
                        show: true,
                        formatter: `device: ${formatBytes(line)}`,
                        color: colour("--bad"),
                        position: "left",
                        verticalAlign: "bottom",
                        offset: [0, -2],
                      },
                    },
                  ],
                },
              ]),
        ],
      })}
    />
  );
}
