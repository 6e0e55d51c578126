/** The Summary page, the verdict first: where a step's time goes, what would save most of it, and how iterations vary. */
import type { Overview, RunEntry } from "../../api/types";
import { Card } from "../../components/Card";
import { Legend } from "../../components/Legend";
import { Term } from "../../components/Term";
import { IterationBars, stepLine } from "../../features/chart/IterationBars";
import { PageHead } from "../../features/PageHead";
import { BarsHint } from "../../features/RangePicker";
import { assign } from "../../state/param";
import { rangeParam } from "../../state/sharedParams";
import { applies, ON_GPU } from "./categories";
import { Findings } from "./Findings";
import { KeyFigures } from "./KeyFigures";
import { More } from "./More";
import { StepBar } from "./StepBar";

const NONE: ReadonlySet<string> = new Set();

export function OverviewPage({ data, entries }: { data: Overview; entries: RunEntry[] }) {
  return (
    <>
      <PageHead
        title="Summary"
        subtitle={data.title}
        headline={data.headline}
        range={data.range}
        trust={data.trust}
      />
      <StepBar data={data} />
      <KeyFigures summary={data.summary} hasGpu={data.has_gpu} />
      <Findings findings={data.findings} entries={entries} />
      <Iterations data={data} />
      <More data={data} />
    </>
  );
}

function Iterations({ data }: { data: Overview }) {
  const { summary } = data;
  const definitions = new Map(data.categories.map((category) => [category.key, category.definition]));
  const usage = data.resource_usage.filter((slice) => applies(slice, data.has_gpu));
  // What the recorder added is not part of the step, and so has no share of it.
  const recorder = data.categories
    .filter(({ key }) => key === "recorder")
    .map(({ key, label }) => ({ key, label, value_ns: summary.recorder_ns, percent: null }));
  return (
    <Card title={<Term of="iterations">Iterations</Term>} actions={<BarsHint />} testId="overview-iterations">
      <IterationBars
        name="Iterations"
        iterations={data.iterations}
        categories={data.categories}
        hidden={data.has_gpu ? NONE : ON_GPU}
        stepNs={stepLine(data.step)}
        onSelect={(range) => assign(rangeParam.to(range))}
      >
        {data.bars_note && <p class="muted small">{data.bars_note}</p>}
        <Legend slices={[...usage, ...recorder]} context="resource_usage" definitions={definitions} plain />
      </IterationBars>
    </Card>
  );
}
