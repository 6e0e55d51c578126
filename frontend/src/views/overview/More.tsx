/** What else is known of the recording: DLProf's rings, precision, parts, top ops, the machine. */
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import type { Overview } from "../../api/types";
import { Card } from "../../components/Card";
import { More } from "../../components/More";
import { CoverageLine } from "../../components/CoverageLine";
import { Term } from "../../components/Term";
import { Donut } from "../../features/chart/Donut";
import { TraceLinks } from "../../features/TraceLinks";
import { LABELS } from "../../format/definitions";
import { UnitNote } from "../../features/UnitNote";
import { applies, largestSlice } from "./categories";
import { Gpus } from "./Gpus";
import { Notes } from "./Notes";
import { NumericHealth } from "./NumericHealth";
import { Parts } from "./Parts";
import { Performance } from "./Performance";
import { Precision } from "./Precision";
import { SystemConfiguration } from "./SystemConfiguration";
import { TopOps } from "./TopOps";

const open = signal(false);

export function MoreOfRecording({ data }: { data: Overview }) {
  return (
    <More title="More about this recording" testId="overview-more" open={open}>
      {() => <Everything data={data} />}
    </More>
  );
}

function Everything({ data }: { data: Overview }) {
  return (
    <>
      <Rings data={data} />
      <div class="grid grid-halves">
        <Precision precision={data.precision} />
        {data.numeric_health && <NumericHealth health={data.numeric_health} />}
        {/* Without a GPU the bar of the step has them. */}
        {data.has_gpu && <Parts parts={data.parts} />}
      </div>
      <div class="grid grid-main">
        <TopOps rows={data.top_ops} hasGpu={data.has_gpu} range={data.range} />
        <Performance summary={data.summary} hasGpu={data.has_gpu} />
      </div>
      {data.gpus.length > 1 && <Gpus gpus={data.gpus} run={data.ref.run} />}
      <SystemConfiguration items={data.system} />
      <TraceLinks />
      <CoverageLine coverage={data.coverage} />
      <Notes notes={data.notes} />
    </>
  );
}

/** DLProf's dashboard. */
function Rings({ data }: { data: Overview }) {
  const { summary } = data;
  const usage = data.resource_usage.filter((slice) => applies(slice, data.has_gpu));
  const largest = largestSlice(usage);
  const definitions = new Map(data.categories.map((category) => [category.key, category.definition]));
  return (
    <>
      <p class="muted small more-note">
        The {data.has_gpu ? "rings have" : "ring has"} DLProf's categories, <UnitNote range={data.range} />.
      </p>
      <div class="grid grid-donuts">
        {data.has_gpu && (
          <Ring title={<Term of="gpuUtilization" />}>
            <Donut
              name={LABELS.gpuUtilization}
              slices={data.gpu_utilization}
              context="gpu_utilization"
              centre={summary.gpu_utilization_percent}
              centreLabel="busy"
            />
          </Ring>
        )}
        <Ring title={<Term of="resourceUsage">Resource usage</Term>}>
          <Donut
            name="Resource usage"
            slices={usage}
            context="resource_usage"
            centre={largest?.percent ?? null}
            centreLabel={largest?.label ?? ""}
            definitions={definitions}
          />
        </Ring>
        {data.has_gpu && (
          <>
            <Ring title={<Term of="kernelTime">Kernel time</Term>}>
              <Donut
                name="Kernel time"
                slices={data.kernel_time}
                context="kernel_time"
                centre={summary.tensor_core_time_percent}
                centreLabel="Tensor Cores"
              />
            </Ring>
            <Ring title={<Term of="tcEfficiency">Eligible kernel time</Term>}>
              <Donut
                name="Eligible kernel time"
                slices={data.tensor_core_efficiency}
                context="tensor_core_efficiency"
                centre={summary.tensor_core_kernel_utilization_percent}
                centreLabel="of eligible"
              />
            </Ring>
          </>
        )}
      </div>
    </>
  );
}

const Ring = ({ title, children }: { title: ComponentChildren; children: ComponentChildren }) => (
  <Card title={title}>{children}</Card>
);
