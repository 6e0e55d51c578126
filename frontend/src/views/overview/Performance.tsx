/** DLProf's performance summary; the figures of the GPU only where there is one. */
import type { ComponentChildren } from "preact";
import type { PerformanceSummary } from "../../api/types";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { exactNs, formatNs } from "../../format/duration";
import { formatInterval } from "../../format/number";
import { isAsRecorded } from "./StepBar";

type Row = readonly [ComponentChildren, ComponentChildren];

export function Performance({ summary, hasGpu }: { summary: PerformanceSummary; hasGpu: boolean }) {
  const utilization: Row[] = [
    [
      <Term of="tcUtilization" />,
      <Value
        value={summary.tensor_core_kernel_utilization_percent}
        missing={summary.tensor_core_kernel_utilization_possible?.text}
        unit="percent"
      />,
    ],
    [<Term of="gpuUtilization" />, <Value value={summary.gpu_utilization_percent} unit="percent" />],
    [<Term of="gpuBusy">GPU busy time</Term>, <Value value={summary.gpu_busy_ns} unit="ns" />],
  ];
  const memory: Row[] = [
    [
      <Term of="memoryPeakAllocated" />,
      <Value value={summary.peak_memory_bytes} unit="bytes" missing="not recorded" />,
    ],
    [<Term of="gpuMemory" />, <Value value={summary.memory_bytes} unit="bytes" missing="not recorded" />],
  ];
  const without: Row[] = [
    [
      <Term of="stepInterval">95 % interval</Term>,
      <span title={`${exactNs(summary.step_low_ns)} to ${exactNs(summary.step_high_ns)}`}>
        {formatInterval(summary.step_low_ns, summary.step_high_ns, formatNs)}
      </span>,
    ],
    [<Term of="recordedStep" />, <Value value={summary.recorded_iteration_ns} unit="ns" />],
    [<Term of="recorder">Added by the recorder</Term>, <Value value={summary.recorder_ns} unit="ns" />],
  ];
  return (
    <Card title="Performance summary" testId="overview-performance">
      <Facts
        rows={[
          [<Term of="wallClock">Wall-clock time</Term>, <Value value={summary.wall_clock_ns} unit="ns" />],
          ...(hasGpu ? utilization : []),
          [
            <Term of="totalIterations">Iterations recorded</Term>,
            <Value value={summary.total_iterations} unit="count" />,
          ],
          [
            <Term of="aggregatedIterations">Iterations aggregated</Term>,
            <Value value={summary.aggregated_iterations} unit="count" />,
          ],
          [<Term of="startIteration">Start iteration</Term>, <Value value={summary.start_iteration} unit="count" />],
          [<Term of="stopIteration">Stop iteration</Term>, <Value value={summary.stop_iteration} unit="count" />],
          [<Term of="stepTime" />, <Value value={summary.average_iteration_ns} unit="ns" />],
          ...(isAsRecorded(summary) ? [] : without),
          [<Term of="stepDeviation" />, <Value value={summary.iteration_deviation_ns} unit="ns" />],
          ...(hasGpu ? memory : []),
        ]}
      />
    </Card>
  );
}
