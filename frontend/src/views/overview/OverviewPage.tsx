/** The Overview page: DLProf's dashboard, from one `Overview` answer. */
import type { Overview } from "../../api/types";
import { Card } from "../../components/Card";
import { Donut } from "../../features/chart/Donut";
import { IterationBars, stepLine } from "../../features/chart/IterationBars";
import { CoverageLine } from "../../components/CoverageLine";
import { Legend } from "../../components/Legend";
import { PageHead } from "../../features/PageHead";
import { UnitNote } from "../../features/UnitNote";
import { BarsHint } from "../../features/RangePicker";
import { Term } from "../../components/Term";
import { TraceLinks } from "../../features/TraceLinks";
import { Findings } from "./Findings";
import { Gpus } from "./Gpus";
import { KeyFigures } from "./KeyFigures";
import { Notes } from "./Notes";
import { NumericHealth } from "./NumericHealth";
import { Parts } from "./Parts";
import { Performance } from "./Performance";
import { Precision } from "./Precision";
import { SystemConfiguration } from "./SystemConfiguration";
import { TopOps } from "./TopOps";
import { assign } from "../../state/param";
import { rangeParam } from "../../state/sharedParams";

/** The categories that only a recording with a GPU can have. */
const ON_GPU: ReadonlySet<string> = new Set(["tensor_core", "other_kernels", "memory"]);
const NONE: ReadonlySet<string> = new Set();

export function OverviewPage({ data }: { data: Overview }) {
  const definitions = new Map(data.categories.map((category) => [category.key, category.definition]));
  const { summary } = data;
  // Without a GPU its categories are not missing from the recording: they do not apply.
  const applies = (category: { key: string }): boolean => data.has_gpu || !ON_GPU.has(category.key);
  const usage = data.resource_usage.filter(applies);
  const largest = largestSlice(usage);
  // What the recorder added is not part of the step, and so has no share of it.
  const recorder = data.categories
    .filter(({ key }) => key === "recorder")
    .map(({ key, label }) => ({ key, label, value_ns: summary.recorder_ns, percent: null }));
  const over = <UnitNote range={data.range} />;
  const resources = (
    <Card title={<Term of="resourceUsage">Resource usage</Term>} actions={over}>
      <Donut
        name="Resource usage"
        slices={usage}
        context="resource_usage"
        centre={largest?.percent ?? null}
        centreLabel={largest?.label ?? ""}
        definitions={definitions}
      />
    </Card>
  );
  const iterations = (
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
  const details = (
    <div class="grid grid-halves">
      <Precision precision={data.precision} />
      {data.numeric_health && <NumericHealth health={data.numeric_health} />}
      <Parts parts={data.parts} />
    </div>
  );
  const findings = <Findings findings={data.findings} />;
  return (
    <>
      <PageHead title="Summary" subtitle={data.title} headline={data.headline} range={data.range} />
      <KeyFigures summary={summary} stepWords={data.step_words} hasGpu={data.has_gpu} />
      {data.has_gpu ? (
        <>
          <div class="grid grid-donuts">
            <Card title={<Term of="gpuUtilization">GPU utilization</Term>} actions={over}>
              <Donut
                name="GPU utilization"
                slices={data.gpu_utilization}
                context="gpu_utilization"
                centre={summary.gpu_utilization_percent}
                centreLabel="busy"
              />
            </Card>
            {resources}
            <Card title={<Term of="kernelTime">Kernel time</Term>} actions={over}>
              <Donut
                name="Kernel time"
                slices={data.kernel_time}
                context="kernel_time"
                centre={summary.tensor_core_time_percent}
                centreLabel="Tensor Cores"
              />
            </Card>
            <Card title={<Term of="tcEfficiency">Tensor Core efficiency</Term>} actions={over}>
              <Donut
                name="Tensor Core efficiency"
                slices={data.tensor_core_efficiency}
                context="tensor_core_efficiency"
                centre={summary.tensor_core_kernel_utilization_percent}
                centreLabel="of eligible"
              />
            </Card>
          </div>
          <div class="grid grid-main">
            {iterations}
            {findings}
          </div>
          {details}
        </>
      ) : (
        <>
          <div class="grid grid-halves">
            {resources}
            {findings}
          </div>
          <div class="grid">{iterations}</div>
          {details}
        </>
      )}
      <div class="grid grid-main">
        <TopOps rows={data.top_ops} hasGpu={data.has_gpu} range={data.range} />
        <Performance summary={summary} hasGpu={data.has_gpu} />
      </div>
      {data.gpus.length > 1 && <Gpus gpus={data.gpus} run={data.ref.run} />}
      <SystemConfiguration items={data.system} />
      <TraceLinks />
      <CoverageLine coverage={data.coverage} />
      <Notes notes={data.notes} />
    </>
  );
}

function largestSlice(slices: Overview["resource_usage"]) {
  return slices.reduce<(typeof slices)[number] | null>(
    (largest, slice) => ((slice.value_ns ?? 0) > (largest?.value_ns ?? 0) ? slice : largest),
    null,
  );
}
