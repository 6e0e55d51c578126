/** The ops over their FLOPs per byte, under the roofs of their GPU; both axes logarithmic, the area of a point is its time. */
import type { ECharts } from "echarts/core";
import type { RooflinePage } from "../../api/types";
import { Chart } from "../../components/chart/Chart";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { useIterations } from "../../components/sums";
import { Drawing } from "../../components/export/Drawing";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatExact, formatPercent, threeDigits } from "../../format/number";
import { exactUnit, formatUnit } from "../../format/unit";
import { COLUMNS } from "./columns";
import { extent, pointSize, points, roofLine } from "./roofs";
import { themeSignal } from "../../state/theme";

interface RooflineChartProps {
  data: RooflinePage;
  /** Ops that stand out; null for all. */
  only?: ReadonlySet<string> | null;
  onOp: (id: string) => void;
}

export function RooflineChart(props: RooflineChartProps) {
  return (
    <Drawing name="Rate of each op under the GPU's roofs" columns={COLUMNS} rows={props.data.ops}>
      <Points {...props} />
    </Drawing>
  );
}

function Points({ data, only = null, onOp }: RooflineChartProps) {
  const theme = themeSignal.value;
  const iterations = useIterations();
  const drawn = points(data.ops);
  const bandwidth = data.bytes_per_second;
  const roofs = bandwidth === null ? [] : data.roofs;
  const area = extent(drawn, roofs, bandwidth);
  const most = Math.max(0, ...drawn.map(({ op }) => op.gpu_ns));
  const property = (precision: string) => (precision ? colourProperty(precision, 0, "ran_in") : "--c-unknown");
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
              return tooltipElement(op.direction ? `${op.name} (${op.direction})` : op.name, [
                {
                  colour: colour(property(op.precision)),
                  label: "Ran in",
                  value: op.precision.toUpperCase() || "unknown",
                },
                { label: "Rate", value: exactUnit(rate, "flops_per_second") },
                { label: "FLOPs per byte", value: formatExact(intensity) },
                { label: "Roof", value: exactUnit(op.ceiling_flops_per_second, "flops_per_second") },
                { label: "Of the roof", value: formatPercent(op.percent_of_ceiling) },
                { label: "GPU time", value: formatNs(op.gpu_ns / iterations) },
              ]);
            },
          },
          xAxis: {
            ...axis,
            min: area.x[0],
            max: area.x[1],
            name: "FLOPs per byte",
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
            axisLabel: {
              color: colour("--muted"),
              formatter: (value: number) => formatUnit(value, "flops_per_second"),
            },
          },
          series: [
            ...roofs.map((roof) => ({
              type: "line",
              name: roof.label,
              symbol: "none",
              silent: true,
              tooltip: { show: false },
              lineStyle: {
                color: colour(property(roof.precision)),
                width: 2,
                type: roof.tensor_cores ? "solid" : "dashed",
              },
              data: roofLine(roof, bandwidth!, area),
            })),
            {
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
                color: colour("--text"),
                fontSize: 11,
                textBorderColor: colour("--surface"),
                textBorderWidth: 3,
              },
              data: roofs.map((roof) => ({
                value: [area.x[1], roof.flops_per_second],
                label: { formatter: `${roof.label}: ${formatUnit(roof.flops_per_second, "flops_per_second")}` },
              })),
            },
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
                  borderColor: colour("--surface"),
                  borderWidth: 1,
                },
              })),
            },
          ],
        };
      }}
    />
  );
}
