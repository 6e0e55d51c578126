/**
 * Lines over the values of a fact, at equal distances because batch sizes double; bars where the values have no order, points on a
 * logarithmic axis where these differ by much.
 */
import type { SweepPage } from "../../api/types";
import { Chart } from "../../components/chart/Chart";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { formatUnit } from "../../format/unit";
import { Drawing } from "../../components/export/Drawing";
import { usePoints } from "./SweepPoints";
import { lineStyles, needsLogarithm, valuesOf, type Dash } from "./sweep";
import { themeSignal } from "../../state/theme";

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
  const theme = themeSignal.value;
  const named = data.curves.length > 1;
  const styles = lineStyles(data.curves);
  const logarithmic = needsLogarithm(data.curves, data.ordered);
  return (
    <>
      <Chart
        height={340}
        theme={theme}
        inputs={[data]}
        label={`${data.measure_label} over ${data.over_label}: ${data.curves.length} ${data.ordered ? "lines" : logarithmic ? "points for each" : "bars for each"}; the table below holds the values.`}
        option={(colour) => ({
          animation: false,
          grid: {
            left: 8,
            right: 20,
            top: logarithmic ? 28 : 16,
            bottom: 8,
            outerBoundsMode: "same",
            outerBoundsContain: "axisLabel",
          },
          tooltip: {
            ...tooltipStyle(colour),
            trigger: "axis",
            axisPointer: { type: data.ordered ? "line" : "shadow" },
            formatter: (points: { dataIndex: number }[]) => {
              const at = points[0]!.dataIndex;
              const lines = data.curves.flatMap((curve, index) => {
                const mark = curve.marks.find((candidate) => candidate.position === at);
                return mark
                  ? [
                      {
                        colour: colour(styles[index]!.property),
                        label: curve.label,
                        value: `${mark.estimated ? "~" : ""}${formatUnit(mark.value, data.unit)}`,
                      },
                    ]
                  : [];
              });
              return tooltipElement(`${data.over_label}: ${data.positions[at] ?? ""}`, lines);
            },
          },
          xAxis: {
            type: "category",
            data: data.positions,
            axisTick: { show: false },
            axisLine: { lineStyle: { color: colour("--line") } },
            axisLabel: {
              color: colour("--muted"),
              hideOverlap: true,
              rotate: data.positions.some((text) => text.length > 8) ? 30 : 0,
            },
          },
          yAxis: {
            ...(logarithmic
              ? { type: "log", name: "logarithmic", nameTextStyle: { color: colour("--muted") } }
              : { type: "value", min: 0 }),
            axisLabel: { color: colour("--muted"), formatter: (value: number) => formatUnit(value, data.unit) },
            splitLine: { lineStyle: { color: colour("--line-soft") } },
          },
          series: data.curves.map((curve, index) => {
            const { property, dash, symbol } = styles[index]!;
            if (!data.ordered && !logarithmic) {
              return {
                type: "bar",
                name: curve.label,
                barMaxWidth: 36,
                itemStyle: { color: colour(property), opacity: BAR_OPACITY[dash] },
                emphasis: { disabled: true },
                data: valuesOf(curve, data.positions.length),
              };
            }
            return {
              type: "line",
              name: curve.label,
              connectNulls: true,
              symbol,
              // A bar has no length on a logarithmic axis, and no line leads from one model to another.
              symbolSize: logarithmic ? 12 : 7,
              itemStyle: { color: colour(property) },
              // Wider below: a line that lies under another shows on both sides of it.
              lineStyle: { width: logarithmic ? 0 : 2 + 2 * Math.max(0, 2 - index), type: dash },
              emphasis: { disabled: true },
              data: valuesOf(curve, data.positions.length),
            };
          }),
        })}
      />
      {named && (
        <ul class="sweep-lines" data-testid="sweep-lines">
          {data.curves.map((curve, index) => {
            const { property, dash } = styles[index]!;
            return (
              <li key={curve.label}>
                <span class="line-swatch" style={{ borderColor: `var(${property})`, borderTopStyle: dash }} />{" "}
                {curve.label}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}
