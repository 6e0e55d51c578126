/** One op's time in each iteration, as bars. */
import type { OpIteration } from "../../api/types";
import { DEFINITIONS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { useTheme } from "../../state/ThemeContext";
import { number } from "../export/columns";
import { Drawing } from "../export/Drawing";
import type { Column } from "../table/columns";
import { Chart } from "./Chart";
import { tooltipElement, tooltipStyle } from "./tooltip";

interface OpIterationsProps {
  /** The op, for the title of a saved picture. */
  op: string;
  iterations: OpIteration[];
  hasGpu: boolean;
}

const COLUMNS: Column<OpIteration>[] = [
  number("Iteration", "count", (row) => row.number, "Number of the iteration."),
  number("GPU time", "ns", (row) => row.gpu_ns, DEFINITIONS.gpuTime),
  number("CPU total", "ns", (row) => row.cpu_total_ns, DEFINITIONS.cpuTotal),
  number("Calls", "count", (row) => row.calls, DEFINITIONS.calls),
];

export function OpIterations({ op, iterations, hasGpu }: OpIterationsProps) {
  return (
    <Drawing name={`${hasGpu ? "GPU" : "CPU"} time of ${op} by iteration`} columns={COLUMNS} rows={iterations}>
      <Bars iterations={iterations} hasGpu={hasGpu} />
    </Drawing>
  );
}

function Bars({ iterations, hasGpu }: Omit<OpIterationsProps, "op">) {
  const theme = useTheme();
  const label = hasGpu ? "GPU time" : "CPU time";
  return (
    <Chart
      height={130}
      theme={theme}
      inputs={[iterations, hasGpu]}
      label={`${label} of the op in each of ${iterations.length} iterations; the menu above shows them as a table.`}
      option={(colour) => ({
        animation: false,
        grid: { left: 4, right: 8, top: 8, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
        tooltip: {
          ...tooltipStyle(colour),
          trigger: "axis",
          axisPointer: { type: "shadow" },
          formatter: (points: { dataIndex: number }[]) => {
            const row = iterations[points[0]!.dataIndex]!;
            return tooltipElement(`Iteration ${row.number}`, [
              { label: "GPU time", value: formatNs(row.gpu_ns) },
              { label: "CPU time", value: formatNs(row.cpu_total_ns) },
              { label: "Calls", value: String(row.calls) },
            ]);
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
          splitNumber: 3,
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
        ],
      })}
    />
  );
}
