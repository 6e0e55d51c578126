/** The page "What fits": memory of a configuration on a GPU, other batch sizes and GPUs, and memory against time. */
import type { PlanPage as PlanData } from "../../api/types";
import { NoteList } from "../../components/NoteList";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { Figure } from "../../components/Figure";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { PageHead } from "../../features/PageHead";
import { RequestControls } from "../../features/RequestControls";
import { assign } from "../../state/param";
import { BATCHES, CHECKPOINTS, FIGURES, GPUS, SHARDS, STAGES } from "./columns";
import { FrontierChart } from "./FrontierChart";
import { planParams } from "./params";

const batchParam = planParams.count("batch_size");
const checkpointParam = planParams.text("checkpoint");
const gpuParam = planParams.text("gpu");

export function PlanPage({ data }: { data: PlanData }) {
  if (data.figures.length === 0) return <NotRecorded data={data} />;
  const run = data.ref.run;
  return (
    <>
      <PageHead title="What fits" headline={data.headline} range={data.range} />
      <RequestControls
        params={planParams}
        recorded={{ batch_size: data.batch_size, sequence_length: data.sequence_length, image_size: data.image_size }}
        listed={{ gpu: data.gpus.map((row) => row.gpu) }}
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
      <div class="grid">
        <Card title={`Batch sizes on the ${data.gpu || "run's GPU"}`} testId="plan-batches">
          <DataTable
            name={`plan by batch ${run}`}
            plain
            columns={BATCHES}
            rows={data.batches}
            rowId={(row) => String(row.batch_size)}
            onSelect={(row) => assign(batchParam.to(row.batch_size))}
          />
        </Card>
        <Card title="On other GPUs" testId="plan-gpus">
          <DataTable
            name={`plan by GPU ${run}`}
            plain
            columns={GPUS}
            rows={data.gpus}
            rowId={(row) => row.gpu}
            onSelect={(row) => assign(gpuParam.to(row.gpu))}
          />
        </Card>
        {data.checkpoints.length > 1 && (
          <Card
            title={<Term of="planCheckpoints">Memory against time: activation checkpointing</Term>}
            testId="plan-checkpoints"
          >
            <FrontierChart
              rows={data.checkpoints}
              capacity={data.capacity_mb}
              chosen={checkpointParam.value?.split(",") ?? []}
              onChoose={(modules) => assign(checkpointParam.to(modules.join(",") || null))}
            />
            <DataTable
              name={`plan by checkpoints ${run}`}
              plain
              columns={CHECKPOINTS}
              rows={data.checkpoints}
              rowId={(row) => row.modules.join(",")}
              onSelect={(row) => assign(checkpointParam.to(row.modules.join(",") || null))}
            />
          </Card>
        )}
      </div>
      {data.shards.length > 0 && (
        <div class="grid grid-halves">
          <Card title={<Term of="planShard">Over {data.shards[0]!.gpus} GPUs, each</Term>} testId="plan-shards">
            <DataTable
              name={`plan by sharding ${run}`}
              plain
              columns={SHARDS}
              rows={data.shards}
              rowId={(row) => row.shard}
            />
          </Card>
          {data.stages.length > 1 && (
            <Card title={<Term of="planStages">Cut over {data.stages.length} GPUs</Term>} testId="plan-stages">
              <DataTable
                name={`plan by stages ${run}`}
                plain
                columns={STAGES}
                rows={data.stages}
                rowId={(row) => row.modules[0] ?? ""}
              />
            </Card>
          )}
        </div>
      )}
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
      {data.deepest && (
        <Figure
          of="planDeepest"
          label="More layers"
          unit="count"
          value={data.deepest.more}
          under={`copies of ${data.deepest.module}`}
          testId="plan-deepest"
        />
      )}
      {data.gpus_needed !== null && (
        <Figure
          of="planGpusNeeded"
          label="GPUs needed"
          unit="count"
          value={data.gpus_needed}
          testId="plan-gpus-needed"
        />
      )}
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
  return <NoteList testId="plan-notes" notes={[...intervals, ...data.assumptions, ...data.reasons]} />;
}

function NotRecorded({ data }: { data: PlanData }) {
  return (
    <>
      <PageHead title="What fits" headline={data.headline} />
      <Reasons data={data} />
    </>
  );
}
