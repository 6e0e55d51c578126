/** The Summary page, the verdict first: where a step's time goes, what would save most of it, and how iterations vary. */
import type { Category, Overview, RunEntry } from "../../api/types";
import { Card } from "../../components/Card";
import { Legend } from "../../components/Legend";
import { Term } from "../../components/Term";
import { IterationBars, stepLine } from "../../features/chart/IterationBars";
import { PageHead } from "../../features/PageHead";
import { BarsHint } from "../../features/RangePicker";
import { assign } from "../../state/param";
import { rangeParam } from "../../state/sharedParams";
import { Findings } from "./Findings";
import { KeyFigures } from "./KeyFigures";
import { MoreOfRecording } from "./More";
import { LEAST_PERCENT, listedParts, StepBar } from "./StepBar";

export function OverviewPage({ data, entries }: { data: Overview; entries: RunEntry[] }) {
  return (
    <>
      <PageHead title="Summary" headline={data.headline} range={data.range} trust={data.trust} />
      <StepBar data={data} />
      <KeyFigures summary={data.summary} hasGpu={data.has_gpu} />
      <Findings entries={entries} />
      <Iterations data={data} />
      <MoreOfRecording data={data} />
    </>
  );
}

function Iterations({ data }: { data: Overview }) {
  const largest = data.buckets.map((_, index) =>
    Math.max(...data.iterations.map((bar) => (bar.category_ns[index] ?? 0) / bar.duration_ns)),
  );
  // What no iteration has is in no bar and needs no colour.
  const inBars = data.buckets.filter((_, index) => largest[index]! > 0);
  // The list of the step's parts names most colours.
  const named = new Set(listedParts(data.account).map(({ key }) => key));
  const unnamed = data.buckets.filter(({ key }, index) => largest[index]! >= LEAST_PERCENT / 100 && !named.has(key));
  return (
    <Card title={<Term of="iterations">Iterations</Term>} testId="overview-iterations">
      <IterationBars
        name="Iterations"
        iterations={data.iterations}
        categories={data.buckets}
        context="account"
        stepNs={stepLine(data.step)}
        onSelect={(range) => assign(rangeParam.to(range))}
      >
        {data.bars_note && <p class="muted small">{data.bars_note}</p>}
        <div class="not-in-picture">
          <Colours of={unnamed} />
        </div>
        <div class="in-picture">
          <Colours of={inBars} />
        </div>
        <BarsHint />
      </IterationBars>
    </Card>
  );
}

const Colours = ({ of }: { of: readonly Category[] }) => (
  <Legend
    slices={of.map(({ key, label }) => ({ key, label, value_ns: null, percent: null }))}
    context="account"
    definitions={new Map(of.map(({ key, definition }) => [key, definition]))}
    plain
  />
);
