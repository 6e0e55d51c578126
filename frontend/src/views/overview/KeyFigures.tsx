/** The numbers that people look for first; without a GPU those that a CPU has. */
import type { PerformanceSummary } from "../../api/types";
import { Figure } from "../../components/Figure";

export function KeyFigures({
  summary,
  stepWords,
  hasGpu,
}: {
  summary: PerformanceSummary;
  stepWords: string;
  hasGpu: boolean;
}) {
  if (!hasGpu) {
    return (
      <dl class="figures">
        <Figure
          of="stepTime"
          label="Step time"
          value={summary.average_iteration_ns}
          unit="ns"
          under={stepWords}
          testId="overview-step-time"
        />
        <Figure
          of="stepDeviation"
          label="Standard deviation"
          value={summary.iteration_deviation_ns}
          unit="ns"
          testId="overview-step-deviation"
        />
        <Figure
          of="samples"
          label="Samples per second"
          value={summary.samples_per_second}
          unit="per_second"
          testId="overview-samples"
        />
      </dl>
    );
  }
  return (
    <dl class="figures">
      <Figure
        of="stepTime"
        label="Step time"
        value={summary.average_iteration_ns}
        unit="ns"
        under={stepWords}
        testId="overview-step-time"
      />
      <Figure
        of="gpuUtilization"
        label="GPU utilization"
        value={summary.gpu_utilization_percent}
        unit="percent"
        testId="overview-gpu-utilization"
      />
      <Figure
        of="tcUtilization"
        label="Tensor Core utilization"
        value={summary.tensor_core_kernel_utilization_percent}
        unit="percent"
        testId="overview-tc-utilization"
      />
      <Figure
        of="samples"
        label="Samples per second"
        value={summary.samples_per_second}
        unit="per_second"
        testId="overview-samples"
      />
      <Figure
        of="peakMemory"
        label="Peak GPU memory"
        value={summary.peak_memory_bytes}
        unit="bytes"
        testId="overview-peak-memory"
      />
    </dl>
  );
}
