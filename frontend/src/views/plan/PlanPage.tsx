/** The page "What fits": memory of a configuration on a GPU, and in parts that open other batch sizes, GPUs, checkpoints. */
import { signal } from "@preact/signals";
import type { PlanPage as PlanData } from "../../api/types";
import { NoteList } from "../../components/NoteList";
import { Card } from "../../components/Card";
import { More } from "../../components/More";
import { Facts } from "../../components/Facts";
import { Figure } from "../../components/Figure";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { PageHead } from "../../features/PageHead";
import { RequestControls } from "../../features/RequestControls";
import { FIGURES } from "./columns";
import { planParams } from "./params";
import { PlanParts } from "./PlanParts";

const assumedOpen = signal(false);

export function PlanPage({ data }: { data: PlanData }) {
  if (data.figures.length === 0) return <NotRecorded data={data} />;
  const run = data.ref.run;
  return (
    <>
      <PageHead title="What fits" headline={data.headline} range={data.range} />
      <RequestControls
        params={planParams}
        recorded={{ batch_size: data.batch_size, sequence_length: data.sequence_length, image_size: data.image_size }}
        listed={{ gpu: data.gpu_names }}
        testId="plan-controls"
      />
      <PlanFigures data={data} />
      <div class="grid grid-halves">
        <Card title={<Term of="planInterval">What it takes</Term>} testId="plan-figures">
          <DataTable name={`plan ${run}`} plain columns={FIGURES} rows={data.figures} rowId={(row) => row.name} />
        </Card>
        <Card title={<Term of="planHeld">Held between two steps</Term>} testId="plan-held">
          <Facts rows={data.held.map((row) => [row.kind, <Value value={row.mb * 1e6} unit="bytes" />])} />
        </Card>
      </div>
      <PlanParts data={data} />
      <Reasons data={data} />
    </>
  );
}

function PlanFigures({ data }: { data: PlanData }) {
  const bytes = (mb: number | null): number | null => (mb === null ? null : mb * 1e6);
  return (
    <dl class="figures">
      <Figure
        of="planCapacity"
        unit="bytes"
        value={bytes(data.capacity_mb)}
        under={data.gpu.replace("NVIDIA ", "")}
        testId="plan-capacity"
      />
      <Figure
        of="planLargestBatch"
        label="Largest batch"
        unit="count"
        value={data.largest_batch}
        under={data.verdict}
        testId="plan-largest"
      />
      <Figure
        of="planStep"
        label="Step"
        unit="ns"
        value={data.step_ms === null ? null : data.step_ms * 1e6}
        testId="plan-step"
      />
      {data.joules_per_step !== null && (
        <Figure
          of="planJoules"
          label="Energy of a step"
          unit="joules"
          value={data.joules_per_step}
          testId="plan-energy"
        />
      )}
    </dl>
  );
}

/** Why something is not known, and what the figures rest on. */
function Reasons({ data }: { data: PlanData }) {
  const intervals = data.figures.slice(0, 1).map(({ source }) => `Intervals: ${source}.`);
  return (
    <>
      <NoteList testId="plan-notes" notes={data.reasons} />
      {data.figures.length > 0 && (
        <More title="What the figures rest on" testId="plan-more-assumed" open={assumedOpen}>
          {() => <NoteList testId="plan-assumed" notes={[...intervals, ...data.assumptions]} />}
        </More>
      )}
    </>
  );
}

function NotRecorded({ data }: { data: PlanData }) {
  return (
    <>
      <PageHead title="What fits" headline={data.headline} />
      <Reasons data={data} />
    </>
  );
}
