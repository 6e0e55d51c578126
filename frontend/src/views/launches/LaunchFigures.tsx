/** The figures on top of the Launches page: who waits for whom, how long launches queue, how often the CPU synchronises. */
import type { LaunchFigures as Figures, StepFigures } from "../../api/types";
import { Figure } from "../../components/Figure";
import { formatNs } from "../../format/duration";
import { formatCount } from "../../format/number";

const NS_PER_MS = 1e6;

export function LaunchFigures({
  figures,
  step,
  stepWords,
}: {
  figures: Figures;
  step: StepFigures;
  stepWords: string;
}) {
  return (
    <dl class="figures">
      <Figure of="stepTime" value={step.ms * NS_PER_MS} unit="ns" under={stepWords} testId="launches-step-time" />
      <Figure of="gpuIdle" value={figures.idle_percent} unit="percent" testId="launches-idle" />
      <Figure
        of="cpuSlack"
        label="CPU not needed"
        value={figures.slack_percent}
        unit="percent"
        testId="launches-slack"
      />
      <Figure
        of="launchDelay"
        label="Median launch delay"
        value={figures.median_delay_ns}
        unit="ns"
        under={figures.max_delay_ns === null ? "" : `longest ${formatNs(figures.max_delay_ns)}`}
        testId="launches-delay"
      />
      <Figure
        of="launchQueue"
        label="Mean queue"
        value={figures.mean_queue}
        unit="count"
        under={figures.max_queue === null ? "" : `deepest ${formatCount(figures.max_queue)}`}
        testId="launches-queue"
      />
      <Figure
        of="syncCalls"
        label="Synchronising calls"
        value={figures.sync_calls_per_iteration}
        unit="count"
        under={`per iteration, ${formatNs(figures.sync_ns_per_iteration)}`}
        testId="launches-syncs"
      />
    </dl>
  );
}

/** What the delays leave out, in one line; nothing where they are complete. */
export function DelayNotes({ figures }: { figures: Figures }) {
  const notes = [
    figures.timed < figures.launches &&
      `The launch call of ${formatCount(figures.launches - figures.timed)} of ${formatCount(figures.launches)} kernels, copies and sets is not known; they have no delay`,
    figures.clock_disagrees > 0 &&
      `${formatCount(figures.clock_disagrees)} seem to begin before their launch: the clocks of CPU and GPU disagree`,
    figures.started_early > 0 &&
      `${formatCount(figures.started_early)} began before their launch call returned, a delay of 0`,
  ].filter(Boolean);
  return notes.length > 0 ? <p class="coverage">{notes.join(". ")}.</p> : null;
}
