/**
 * The ops over their FLOPs per byte, under the roofs of their GPU; both axes logarithmic, the area of a point is its time. A roof
 * in which no op ran is drawn lighter: it is where another precision would lead. Ops above their own roof have a ring.
 */
import type { ECharts } from "echarts/core";
import type { Roof, RooflinePage } from "../../api/types";
import { Chart, type Colour } from "../../components/chart/Chart";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { useIterations } from "../../components/sums";
import { Drawing } from "../../components/export/Drawing";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatByteRate, formatPercent, threeDigits } from "../../format/number";
import { formatUnit } from "../../format/unit";
import { COLUMNS } from "./columns";
import { alongLine, extent, memoryLine, pointSize, points, reasonsAbove, roofLine, type Point } from "./roofs";
import { themeSignal } from "../../state/theme";

interface RooflineChartProps {
  data: RooflinePage;
  /** Ops that stand out; null for all. */
  only?: ReadonlySet<string> | null;
  onOp: (id: string) => void;
}

export function RooflineChart(props: RooflineChartProps) {
  const drawn = points(props.data.ops);
  return (
    <Drawing name="Rate of each op under the GPU's roofs" columns={COLUMNS} rows={props.data.ops}>
      <Points {...props} drawn={drawn} />
      <Above drawn={drawn} />
    </Drawing>
  );
}

/** What a ring means, with the reasons of this run; nothing where no op is above its roof. */
function Above({ drawn }: { drawn: readonly Point[] }) {
  const reasons = reasonsAbove(drawn);
  if (reasons.length === 0) return null;
  return (
    <ul class="roof-above small" data-testid="roofline-above">
      {reasons.map(({ why, ops }) => (
        <li key={why}>
          <span class="roof-ring" aria-hidden="true" /> Above the roof, {ops === 1 ? "1 op" : `${ops} ops`}: {why}.
        </li>
      ))}
    </ul>
  );
}

const LIGHTER = 0.45;
const property = (precision: string): string => (precision ? colourProperty(precision, 0, "ran_in") : "--c-unknown");

/** A roof and its name at the right edge. */
function roofSeries(roof: Roof, bandwidth: number, area: ReturnType<typeof extent>, colour: Colour) {
  return {
    type: "line",
    name: roof.label,
    symbol: "none",
    silent: true,
    tooltip: { show: false },
    lineStyle: {
      color: colour(property(roof.precision)),
      width: roof.reached ? 2.5 : 1.5,
      opacity: roof.reached ? 1 : LIGHTER,
      type: roof.tensor_cores ? "solid" : "dashed",
    },
    data: roofLine(roof, bandwidth, area),
  };
}

/** Texts at points of the chart, to the left of them. */
function labelSeries(labels: readonly { at: [number, number]; text: string; muted?: boolean }[], colour: Colour) {
  return {
    type: "scatter",
    name: "roof labels",
    silent: true,
    z: 5,
    symbolSize: 0.1,
    tooltip: { show: false },
    label: {
      show: true,
      position: "left",
      distance: 0,
      offset: [0, -9],
      fontSize: 11,
      textBorderColor: colour("--surface"),
      textBorderWidth: 3,
    },
    data: labels.map(({ at, text, muted }) => ({
      value: at,
      label: { formatter: text, color: colour(muted ? "--muted" : "--text") },
    })),
  };
}

function Points({ data, only = null, onOp, drawn }: RooflineChartProps & { drawn: readonly Point[] }) {
  const theme = themeSignal.value;
  const iterations = useIterations();
  const bandwidth = data.bytes_per_second;
  const roofs = bandwidth === null ? [] : data.roofs;
  const area = extent(drawn, roofs, bandwidth);
  const most = Math.max(0, ...drawn.map(({ op }) => op.gpu_ns));
  const memory = bandwidth === null ? [] : memoryLine(roofs, bandwidth, area);
  const named = alongLine(memory, 0.8);
  return (
    <Chart
      height={380}
      theme={theme}
      inputs={[data, only, iterations]}
      label={`Rate over FLOPs per byte of ${drawn.length} ops, under ${roofs.length} roofs; the table below holds the values.`}
      onReady={(chart: ECharts) => {
        chart.off("click");
        chart.on("click", { seriesName: "ops" }, (event) => {
          const point = drawn[event.dataIndex];
          if (point) onOp(point.op.id);
        });
      }}
      option={(colour) => {
        const axis = {
          type: "log",
          axisLine: { show: true, lineStyle: { color: colour("--line") } },
          axisTick: { show: false },
          splitLine: { lineStyle: { color: colour("--line-soft") } },
          nameTextStyle: { color: colour("--muted") },
        };
        return {
          animation: false,
          grid: { left: 8, right: 20, top: 30, bottom: 24, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
          tooltip: {
            ...tooltipStyle(colour),
            trigger: "item",
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const { op, intensity, rate } = drawn[dataIndex]!;
              return tooltipElement(
                op.direction ? `${op.name} (${op.direction})` : op.name,
                [
                  {
                    colour: colour(property(op.precision)),
                    label: "Ran in",
                    value: op.precision.toUpperCase() || "unknown",
                  },
                  { label: "Rate", value: formatUnit(rate, "flops_per_second") },
                  { label: "Its roof", value: formatUnit(op.ceiling_flops_per_second, "flops_per_second") },
                  { label: "Of the roof", value: formatPercent(op.percent_of_ceiling) },
                  { label: "FLOPs per byte", value: threeDigits(intensity) },
                  { label: "GPU time", value: formatNs(op.gpu_ns / iterations) },
                ],
                op.why_above_roof && `Above its roof: ${op.why_above_roof}.`,
              );
            },
          },
          xAxis: {
            ...axis,
            min: area.x[0],
            max: area.x[1],
            name: "Arithmetic intensity (FLOPs per byte)",
            nameLocation: "middle",
            nameGap: 26,
            axisLabel: {
              color: colour("--muted"),
              hideOverlap: true,
              formatter: (value: number) => threeDigits(value),
            },
          },
          yAxis: {
            ...axis,
            min: area.y[0],
            max: area.y[1],
            name: "Rate (FLOP/s)",
            nameLocation: "end",
            nameGap: 12,
            nameTextStyle: { color: colour("--muted"), align: "left", padding: [0, 0, 0, -56] },
            axisLabel: {
              color: colour("--muted"),
              formatter: (value: number) => formatUnit(value, "flops_per_second"),
            },
          },
          series: [
            {
              type: "line",
              name: "memory",
              symbol: "none",
              silent: true,
              tooltip: { show: false },
              lineStyle: { color: colour("--muted"), width: 2 },
              data: memory,
            },
            // Roofs in which ops ran last, so that they are on top.
            ...[...roofs]
              .sort((a, b) => Number(a.reached) - Number(b.reached))
              .map((roof) => roofSeries(roof, bandwidth!, area, colour)),
            labelSeries(
              [
                ...roofs.map((roof) => ({
                  at: [area.x[1], roof.flops_per_second] as [number, number],
                  // That a dashed roof is without Tensor Cores is said above the chart.
                  text: `${roof.label.replace(" without Tensor Cores", "")}: ${formatUnit(roof.flops_per_second, "flops_per_second")}`,
                  muted: !roof.reached,
                })),
                ...(named === null ? [] : [{ at: named, text: `Memory: ${formatByteRate(bandwidth)}` }]),
              ],
              colour,
            ),
            {
              type: "scatter",
              name: "ops",
              cursor: "pointer",
              z: 4,
              data: drawn.map(({ op, intensity, rate }) => ({
                value: [intensity, rate],
                symbolSize: pointSize(op.gpu_ns, most),
                itemStyle: {
                  color: colour(property(op.precision)),
                  opacity: only === null || only.has(op.id) ? 0.75 : 0.1,
                  borderColor: colour(op.why_above_roof ? "--text" : "--surface"),
                  borderWidth: op.why_above_roof ? 2 : 1,
                },
              })),
            },
          ],
        };
      }}
    />
  );
}
