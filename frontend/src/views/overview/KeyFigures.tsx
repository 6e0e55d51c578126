/** The numbers that people look for first, but the step's length, which the bar has; without a GPU those that a CPU has. */
import type { PerformanceSummary } from "../../api/types";
import { Figure } from "../../components/Figure";
import { formatNs } from "../../format/duration";
import { formatWatts } from "../../format/number";

export function KeyFigures({ summary, hasGpu }: { summary: PerformanceSummary; hasGpu: boolean }) {
  const samples = (
    <Figure of="samples" value={summary.samples_per_second} unit="per_second" testId="overview-samples" />
  );
  if (!hasGpu) {
    return (
      <dl class="figures">
        {samples}
        <Figure of="cpuThreads" label="CPU threads" value={summary.threads} unit="count" testId="overview-threads" />
        <Figure of="stepDeviation" value={summary.iteration_deviation_ns} unit="ns" testId="overview-step-deviation" />
      </dl>
    );
  }
  const eligible = summary.tensor_core_eligible_ns;
  return (
    <dl class="figures">
      <Figure
        of="gpuUtilization"
        value={summary.gpu_utilization_percent}
        unit="percent"
        testId="overview-gpu-utilization"
      />
      <Figure
        of="tcUtilization"
        value={summary.tensor_core_kernel_utilization_percent}
        missing={summary.tensor_core_kernel_utilization_possible?.text}
        unit="percent"
        under={eligible ? `of ${formatNs(eligible / summary.aggregated_iterations)} eligible` : ""}
        testId="overview-tc-utilization"
      />
      {samples}
      <Figure of="memoryPeakAllocated" value={summary.peak_memory_bytes} unit="bytes" testId="overview-peak-memory" />
      {summary.joules_per_step !== null && (
        <Figure
          of="joulesPerStep"
          value={summary.joules_per_step}
          unit="joules"
          under={`at ${formatWatts(summary.watts)}`}
          testId="overview-energy"
        />
      )}
    </dl>
  );
}
