/** The Distributed page: where a step of the whole job goes, who delays whom and why, what repairs win, and how sure that is. */
import type { DistributedPage as JobData, RunEntry } from "../../api/types";
import { signal } from "@preact/signals";
import { More } from "../../components/More";
import { NoteList } from "../../components/NoteList";
import { Figure } from "../../components/Figure";
import { TableCard } from "../../components/table/TableCard";
import { Term } from "../../components/Term";
import { PageHead } from "../../features/PageHead";
import { formatNs } from "../../format/duration";
import { formatPercent, threeDigits } from "../../format/number";
import { openPage } from "../../state/navigate";
import { profileParam } from "../../state/sharedParams";
import { CERTAIN_DELAYS, COLLECTIVES, DELAYS, WHAT_IF } from "./columns";
import { HeatMap } from "./HeatMap";
import { OtherJobs } from "./OtherJobs";
import { jobCollectivesTable } from "./params";
import { RankAccounts } from "./RankAccounts";
import { RankLines } from "./RankLines";

const moreOpen = signal(false);

/** A change that saves less of the step is listed further down. */
const WORTH_PERCENT = 1;

export function DistributedPage({ data, entries }: { data: JobData; entries: RunEntry[] }) {
  const { ref } = data;
  // What is not recorded limits everything below: the notes say it first.
  const partial = data.ranks < data.world_size;
  const certain = data.delays.filter((delay) => delay.certain);
  const delays = certain.length > 0 ? certain : data.delays;
  const worth = data.what_if.filter((change) => (change.saved_percent ?? 0) >= WORTH_PERCENT);
  const changes = worth.length > 0 ? worth : data.what_if;
  const open = (rank: number): void =>
    openPage("overview", profileParam.to({ ...profileParam.value, run: ref.run, rank, cycle: null }));
  return (
    <>
      <PageHead title="Distributed" headline={data.headline} />
      {partial && <NoteList testId="job-notes" notes={data.notes} />}
      <JobFigures data={data} />
      <div class="grid">
        <TableCard
          title="Who delays the others, and why"
          testId="job-delays"
          name={`delays ${ref.run}`}
          plain
          columns={delays === certain ? CERTAIN_DELAYS : DELAYS}
          rows={delays}
          rowId={(row) => String(row.rank)}
          onSelect={(row) => open(row.rank)}
        />
        {data.account.rank.length > 0 && (
          <RankAccounts run={ref.run} account={data.account} selected={String(ref.rank)} onOpen={open} />
        )}
        <TableCard
          title={<Term of="jobWhatIf">What changes would save</Term>}
          testId="job-what-if"
          name={`repairs ${ref.run}`}
          plain
          columns={WHAT_IF}
          rows={changes}
          rowId={(row) => row.change}
        />
        {data.heat && data.ranks > 1 && (
          <HeatMap heat={data.heat} mesh={data.mesh} ranks={data.account.rank} onOpen={open} />
        )}
        {data.shown_ranks.length > 1 && <RankLines data={data} />}
        <TableCard
          title="Collectives"
          testId="job-collectives"
          name={`collectives ${ref.run}`}
          options={jobCollectivesTable}
          columns={COLLECTIVES}
          rows={data.collectives}
          rowId={(row) => [row.operation, row.dimension, row.size, row.module].join("|")}
        />
        {data.account.rank.length > 0 && <OtherJobs run={ref.run} entries={entries} />}
      </div>
      <More title="All changes and delays, and how well ranks match" testId="job-more" open={moreOpen}>
        {() => (
          <>
            <Certainty data={data} />
            {data.figures.simulated_error_percent !== null && (
              <p class="muted small">{replayed(data.figures.simulated_error_percent)}</p>
            )}
            {changes.length < data.what_if.length && (
              <TableCard
                title={<Term of="jobWhatIf">All changes</Term>}
                testId="job-all-changes"
                name={`all repairs ${ref.run}`}
                plain
                columns={WHAT_IF}
                rows={data.what_if}
                rowId={(row) => row.change}
              />
            )}
            {delays.length < data.delays.length && (
              <TableCard
                title="All delays"
                testId="job-all-delays"
                name={`all delays ${ref.run}`}
                plain
                columns={DELAYS}
                rows={data.delays}
                rowId={(row) => String(row.rank)}
                onSelect={(row) => open(row.rank)}
              />
            )}
          </>
        )}
      </More>
      {!partial && <NoteList testId="job-notes" notes={data.notes} />}
    </>
  );
}

/** How far the replay of the recorded steps is off, which all repairs rest on. */
const replayed = (percent: number): string =>
  Math.abs(percent) < 0.05
    ? "The replay takes as long as the recorded step."
    : `The replay is ${formatPercent(Math.abs(percent))} ${percent > 0 ? "longer" : "shorter"} than the recorded step.`;

function JobFigures({ data }: { data: JobData }) {
  const { figures } = data;
  const interval =
    figures.step_low_ns === null || figures.step_high_ns === null
      ? ""
      : `${formatNs(figures.step_low_ns)} to ${formatNs(figures.step_high_ns)}`;
  return (
    <dl class="figures">
      <Figure of="jobStep" label="Step" unit="ns" value={figures.step_ns} under={interval} testId="job-step" />
      <Figure
        of="jobComputing"
        label="Ranks compute"
        unit="percent"
        value={figures.compute_percent}
        under={figures.balance_percent === null ? "" : `load balance ${formatPercent(figures.balance_percent)}`}
        testId="job-compute"
      />
      {figures.wasted_percent !== null && (
        <Figure
          of="jobWasted"
          label="Lost to uneven ranks"
          unit="percent"
          value={figures.wasted_percent}
          under={
            figures.wasted_gpu_hours_per_day === null
              ? ""
              : `${threeDigits(figures.wasted_gpu_hours_per_day)} GPU-hours a day`
          }
          testId="job-wasted"
        />
      )}
    </dl>
  );
}

/** How well the ranks are matched, which all figures rest on. */
function Certainty({ data }: { data: JobData }) {
  const { figures } = data;
  return (
    <dl class="figures">
      <Figure
        of="jobFlops"
        label="FLOPs utilization"
        unit="percent"
        value={figures.flops_utilization_percent}
        under="of the BF16 peak"
        testId="job-flops"
      />
      <Figure
        of="jobMatched"
        label="Collectives matched"
        unit="percent"
        value={figures.matched_percent}
        under={`${data.ranks} of ${data.world_size} ranks recorded`}
        testId="job-matched"
      />
      <Figure
        of="jobClock"
        label="Clocks aligned to"
        unit="ns"
        value={figures.clock_us === null ? null : figures.clock_us * 1000}
        testId="job-clock"
      />
    </dl>
  );
}
