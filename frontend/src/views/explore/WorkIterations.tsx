/** The time of an op, op type, kernel or module in each iteration, as small bars. */
import type { WorkIteration } from "../../api/types";
import { DEFINITIONS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { formatCount } from "../../format/number";
import { number } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { upwards, places } from "../../components/chart/axis";
import { Bars, LongestMarks } from "../../components/chart/Bars";
import { Chart, type Plot, type Tip } from "../../components/chart/Chart";
import { isMerged, MERGED } from "../../components/chart/merged";

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
      <SmallBars iterations={iterations} hasGpu={hasGpu} />
    </Drawing>
  );
}

function SmallBars({ iterations, hasGpu }: Omit<WorkIterationsProps, "name">) {
  const merged = isMerged(iterations);
  const label = hasGpu ? "GPU time" : "CPU time";
  const timeOf = (row: WorkIteration): number => (hasGpu ? row.gpu_ns : row.cpu_total_ns) ?? 0;
  const draw = (plot: Plot) => (
    <>
      <Bars plot={plot} parts={[{ colour: "var(--accent)", values: iterations.map(timeOf) }]} widest={40} />
      {merged && <LongestMarks plot={plot} bars={iterations} />}
    </>
  );
  const tip = (plot: Plot, x: number): Tip | null => {
    const at = Math.round(plot.x.valueAt(x));
    const row = iterations[at];
    if (!row) return null;
    const several = row.last > row.index;
    return {
      title: several ? `Iterations ${row.number}–${row.last_number}, on average` : `Iteration ${row.number}`,
      marked: [at - 0.5, at + 0.5],
      lines: [
        { label: "GPU time", value: formatNs(row.gpu_ns) },
        ...(row.cpu_total_ns === null ? [] : [{ label: "CPU time", value: formatNs(row.cpu_total_ns) }]),
        { label: "Calls", value: formatCount(row.calls) },
        ...(several
          ? [
              {
                label: `Shortest and longest ${label}`,
                value: `${formatNs(row.shortest_ns)}, ${formatNs(row.longest_ns)}`,
              },
            ]
          : []),
      ],
    };
  };
  return (
    <Chart
      height={84}
      label={`${label} in each of ${iterations.length} ${merged ? "groups of iterations" : "iterations"}; the menu above shows them as a table.`}
      x={places(iterations.map((row) => String(row.number)))}
      y={(height) => upwards(iterations.map(merged ? (row) => row.longest_ns : timeOf), height, formatNs)}
      draw={draw}
      inputs={[iterations, hasGpu]}
      tip={tip}
    />
  );
}
