/** The Compare page: two runs side by side, from one `ComparePage` answer. */
import { signal } from "@preact/signals";
import * as columns from "../../api/columns";
import type { Query } from "../../api/source";
import type { ComparePage as CompareData, StepFigures } from "../../api/types";
import { SubjectContext } from "../../components/export/Drawing";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { tableColumns } from "../../components/table/declared";
import { More } from "../../components/More";
import { PageHead } from "../../features/PageHead";
import { Term } from "../../components/Term";
import { Facts } from "../../components/Facts";
import { Value } from "../../components/Value";
import { formatNs } from "../../format/duration";
import { formatInterval, formatRatio } from "../../format/number";
import { Categories } from "./Categories";
import { CompareOps } from "./CompareOps";
import { Drill } from "./Drill";
import { Families } from "./Families";
import { Matching } from "./Matching";
import { Metrics } from "./Metrics";
import { PredictedSavings } from "./PredictedSavings";
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
          {data.different_models ? (
            <p data-testid="compare-different-models">
              None: {data.a.model} and {data.b.model} are different models.
            </p>
          ) : (
            <Speedup data={data} />
          )}
          <StepTimes data={data} />
        </Card>
        <Card title={<Term of="waterfall">Where the difference comes from</Term>} testId="compare-waterfall">
          <Waterfall data={data} />
        </Card>
      </div>
      <div class="compare-stack">
        <Drill data={data} query={query} />
        <PredictedSavings data={data} />
      </div>
      <MoreOfPair data={data} />
    </SubjectContext.Provider>
  );
}

const open = signal(false);
const COMPILED_MODULES = tableColumns(columns.CompareCompiledModule);

/** What else is known of the pair. */
function MoreOfPair({ data }: { data: CompareData }) {
  return (
    <More title="All ops, measures and families of kernels" testId="compare-more" open={open}>
      {() => (
        <>
          {data.explanation.length > 0 && (
            <Card title="In words" testId="compare-explanation">
              <ul class="explanation">
                {data.explanation.map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
            </Card>
          )}
          {data.compiled_modules.length > 0 && (
            <Card title="By module, eager against compiled" testId="compare-compiled">
              <DataTable
                name={`${data.a.ref.run} and ${data.b.ref.run} by module`}
                columns={COMPILED_MODULES}
                rows={data.compiled_modules}
                rowId={(row) => row.module}
                totalRows={data.total_compiled_modules}
              />
            </Card>
          )}
          <CompareOps data={data} />
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
          {data.notes.length > 0 && (
            <ul class="muted small" data-testid="compare-notes">
              {data.notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          )}
        </>
      )}
    </More>
  );
}

/** Of the speedup: none where which run is faster is not known. */
const COLOURS: Record<CompareData["change"], string> = {
  faster: "change-better",
  slower: "change-worse",
  "within noise": "muted",
  unknown: "muted",
};

function Speedup({ data }: { data: CompareData }) {
  return (
    <>
      <p
        class={`speedup ${COLOURS[data.change]}`}
        data-testid="compare-speedup"
        data-value={data.speedup === null ? "unknown" : String(data.speedup)}
        title={String(data.speedup ?? "unknown")}
      >
        {data.speedup === null ? <span class="missing">unknown</span> : formatRatio(data.speedup)}
      </p>
      {data.speedup === null && <p class="muted small">The step time of a run is unknown.</p>}
      <Certainty data={data} />
    </>
  );
}

/** The interval of the speedup, and whether the steps differ at all. */
function Certainty({ data }: { data: CompareData }) {
  if (data.speedup === null) return null;
  if (data.speedup_low === null || data.speedup_high === null)
    return <p class="muted small">A step is that of a single recorded iteration: no interval.</p>;
  return (
    <p class="muted small" data-testid="compare-interval">
      <Term of="noise">95 %</Term>: {formatInterval(data.speedup_low, data.speedup_high, formatRatio)}
      {data.noise && ", which holds 1"}
    </p>
  );
}

/** A step without the profiler, its interval on hover. */
function StepValue({ step, source }: { step: StepFigures; source: string }) {
  return (
    <span title={`${formatInterval(step.low_ms * 1e6, step.high_ms * 1e6, formatNs)}: ${source}`}>
      {step.source === "simulated" && <span title="estimated">~</span>}
      <Value value={Math.round(step.ms * 1e6)} unit="ns" />
    </span>
  );
}

/** What the speedup is made of, and how both steps are known. */
function StepTimes({ data }: { data: CompareData }) {
  return (
    <div class="step-times">
      <Facts
        rows={[
          [
            <>
              Base: <Term of="stepTime" />
            </>,
            <StepValue step={data.base_step} source={data.a.step_text} />,
          ],
          [
            <>
              Candidate: <Term of="stepTime" />
            </>,
            <StepValue step={data.candidate_step} source={data.b.step_text} />,
          ],
          ...(data.batches && !data.different_models
            ? ([
                [
                  <Term of="perSample">Per sample</Term>,
                  <Value value={data.batches.speedup_per_sample} unit="ratio" />,
                ],
              ] as const)
            : []),
        ]}
      />
    </div>
  );
}
