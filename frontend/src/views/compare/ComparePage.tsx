/** The Compare page: two runs side by side, from one `ComparePage` answer. */
import type { ComparePage as CompareData } from "../../api/types";
import { Card } from "../../components/Card";
import { PageHead } from "../../components/PageHead";
import { Term } from "../../components/Term";
import { Facts } from "../../components/Facts";
import { Value } from "../../components/Value";
import { formatRatio } from "../../format/number";
import { Categories } from "./Categories";
import { CompareOps } from "./CompareOps";
import { Families } from "./Families";
import { Metrics } from "./Metrics";

export function ComparePage({ data }: { data: CompareData }) {
  return (
    <>
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
          <StepTimes data={data} />
        </Card>
        <Card title={<Term of="resourceUsage">Time per iteration by category</Term>} testId="compare-categories">
          <Categories data={data} />
        </Card>
      </div>
      <div class="grid grid-halves">
        <Card title="Measures">
          <Metrics metrics={data.metrics} />
        </Card>
        <Card title={<Term of="kernelFamily">Kernel time by family</Term>} testId="compare-families">
          <Families families={data.families} />
        </Card>
      </div>
      <CompareOps data={data} />
    </>
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
          ["Step, base", <Value value={step.a} unit="ns" />],
          ["Step, candidate", <Value value={step.b} unit="ns" />],
        ]}
      />
    </div>
  );
}
