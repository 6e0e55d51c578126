/** The time of an op, op type, kernel or module in each iteration, as small bars. */
import type { WorkIteration } from "../../api/types";
import { DEFINITIONS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { formatCount } from "../../format/number";
import { number } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { Chart } from "../../components/chart/Chart";
import { isMerged, longestMarks, MERGED } from "../../components/chart/merged";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { themeSignal } from "../../state/theme";

interface WorkIterationsProps {
  /** What it is of, for the title of a saved picture. */
  name: string;
  iterations: WorkIteration[];
  hasGpu: boolean;
}

const COLUMNS: Column<WorkIteration>[] = [
  number("Iteration", "count", (row) => row.number, "Number of the iteration."),
  number("GPU time", "ns", (row) => row.gpu_ns, DEFINITIONS.gpuTime),
  number("CPU total", "ns", (row) => row.cpu_total_ns, DEFINITIONS.cpuTotal),
  number("Calls", "count", (row) => row.calls, DEFINITIONS.calls),
];

/** Of a long recording, whose rows are means of several iterations. */
const LONG: Column<WorkIteration>[] = [COLUMNS[0]!, ...MERGED, ...COLUMNS.slice(1)];

export function WorkIterations({ name, iterations, hasGpu }: WorkIterationsProps) {
  return (
    <Drawing
      name={`${hasGpu ? "GPU" : "CPU"} time of ${name} by iteration`}
      columns={isMerged(iterations) ? LONG : COLUMNS}
      rows={iterations}
    >
      <Bars iterations={iterations} hasGpu={hasGpu} />
    </Drawing>
  );
}

function Bars({ iterations, hasGpu }: Omit<WorkIterationsProps, "name">) {
  const theme = themeSignal.value;
  const merged = isMerged(iterations);
  const label = hasGpu ? "GPU time" : "CPU time";
  return (
    <Chart
      height={84}
      theme={theme}
      inputs={[iterations, hasGpu]}
      label={`${label} in each of ${iterations.length} ${merged ? "groups of iterations" : "iterations"}; the menu above shows them as a table.`}
      option={(colour) => ({
        animation: false,
        grid: { left: 4, right: 8, top: 8, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
        tooltip: {
          ...tooltipStyle(colour),
          trigger: "axis",
          axisPointer: { type: "shadow" },
          formatter: (points: { dataIndex: number }[]) => {
            const row = iterations[points[0]!.dataIndex]!;
            return tooltipElement(
              row.last > row.index
                ? `Iterations ${row.number}–${row.last_number}, on average`
                : `Iteration ${row.number}`,
              [
                { label: "GPU time", value: formatNs(row.gpu_ns) },
                ...(row.cpu_total_ns === null ? [] : [{ label: "CPU time", value: formatNs(row.cpu_total_ns) }]),
                { label: "Calls", value: formatCount(row.calls) },
                ...(row.last > row.index
                  ? [
                      {
                        label: `Shortest and longest ${label}`,
                        value: `${formatNs(row.shortest_ns)}, ${formatNs(row.longest_ns)}`,
                      },
                    ]
                  : []),
              ],
            );
          },
        },
        xAxis: {
          type: "category",
          data: iterations.map((row) => String(row.number)),
          axisTick: { show: false },
          axisLine: { lineStyle: { color: colour("--line") } },
          axisLabel: { color: colour("--muted"), hideOverlap: true },
        },
        yAxis: {
          type: "value",
          splitNumber: 2,
          axisLabel: { color: colour("--muted"), formatter: (value: number) => formatNs(value) },
          splitLine: { lineStyle: { color: colour("--line-soft") } },
        },
        series: [
          {
            type: "bar",
            barMaxWidth: 40,
            itemStyle: { color: colour("--accent") },
            emphasis: { disabled: true },
            data: iterations.map((row) => (hasGpu ? row.gpu_ns : row.cpu_total_ns)),
          },
          ...(merged ? [longestMarks(iterations, colour("--text"))] : []),
        ],
      })}
    />
  );
}
