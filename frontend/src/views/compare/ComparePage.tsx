/** The Compare page: two runs side by side, from one `ComparePage` answer. */
import type { Query } from "../../api/client";
import type { ComparePage as CompareData } from "../../api/types";
import { SubjectContext } from "../../components/export/Drawing";
import { Card } from "../../components/Card";
import { PageHead } from "../../components/PageHead";
import { Term } from "../../components/Term";
import { Facts } from "../../components/Facts";
import { Value } from "../../components/Value";
import { formatRatio } from "../../format/number";
import { Categories } from "./Categories";
import { CompareOps } from "./CompareOps";
import { Drill } from "./Drill";
import { Families } from "./Families";
import { Matching } from "./Matching";
import { Metrics } from "./Metrics";
import { Promises } from "./Promises";
import { Waterfall } from "./Waterfall";

export function ComparePage({ data, query }: { data: CompareData; query: Query }) {
  return (
    <SubjectContext.Provider value={`${data.a.ref.run} and ${data.b.ref.run}`}>
      <PageHead title="Compare" headline={data.headline} />
      {data.warnings.length > 0 && (
        <ul class="warnings" data-testid="compare-warnings">
          {data.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
      <div class="grid grid-compare">
        <Card title={<Term of="speedup">Speedup</Term>}>
          <p class="speedup" data-testid="compare-speedup" data-value={data.speedup === null ? "unknown" : String(data.speedup)} title={String(data.speedup ?? "unknown")}>
            {data.speedup === null ? <span class="missing">unknown</span> : formatRatio(data.speedup)}
          </p>
          <p class="muted small">
            {data.speedup === null ? "The step time of a run is unknown." : data.speedup >= 1 ? "The candidate is faster." : "The candidate is slower."}
          </p>
          <Certainty data={data} />
          <StepTimes data={data} />
        </Card>
        <Card title={<Term of="waterfall">Where the difference comes from</Term>} testId="compare-waterfall">
          <Waterfall data={data} />
        </Card>
      </div>
      <div class="compare-stack">
        {data.explanation.length > 0 && (
          <Card title="In words" testId="compare-explanation">
            <ul class="explanation">
              {data.explanation.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </Card>
        )}
        <Promises data={data} />
        <Drill data={data} query={query} />
      </div>
      <div class="grid grid-halves">
        <Card title="Measures">
          <Metrics metrics={data.metrics} />
        </Card>
        <Card title={<Term of="kernelFamily">Kernel time by family</Term>} testId="compare-families">
          <Families families={data.families} />
        </Card>
      </div>
      <div class="grid grid-halves">
        <Card title={<Term of="resourceUsage">Time per iteration by category</Term>} testId="compare-categories">
          <Categories data={data} />
        </Card>
        <Card title="Matching">
          <Matching data={data} />
        </Card>
      </div>
      <CompareOps data={data} />
    </SubjectContext.Provider>
  );
}

/** The interval of the speedup, and whether the steps differ at all. */
function Certainty({ data }: { data: CompareData }) {
  if (data.speedup === null) return null;
  if (data.speedup_low === null || data.speedup_high === null) return <p class="muted small">A run has a single iteration: no interval.</p>;
  return (
    <p class="muted small" data-testid="compare-interval">
      <Term of="noise">95 %</Term>: {formatRatio(data.speedup_low)} to {formatRatio(data.speedup_high)}
      {data.noise && ", so the difference is noise"}
    </p>
  );
}

/** What the speedup is made of. */
function StepTimes({ data }: { data: CompareData }) {
  const step = data.metrics.find((metric) => metric.key === "step_time");
  if (!step) return null;
  return (
    <div class="step-times">
      <Facts
        rows={[
          [<Term of="stepTime">Step, base</Term>, <Value value={step.a} unit="ns" />],
          [<Term of="stepTime">Step, candidate</Term>, <Value value={step.b} unit="ns" />],
          ...(data.batches ? ([[<Term of="perSample">Per sample</Term>, <Value value={data.batches.speedup_per_sample} unit="ratio" />]] as const) : []),
        ]}
      />
    </div>
  );
}
