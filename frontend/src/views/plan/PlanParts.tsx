/** What the plan answers around its configuration: each part is computed once it is opened, since it replays many steps. */
import { type Signal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { profileQuery } from "../../api/queries";
import type { PlanPage as PlanData } from "../../api/types";
import { useResource } from "../../api/useResource";
import { Figure } from "../../components/Figure";
import { More } from "../../components/More";
import { TableCard } from "../../components/table/TableCard";
import { Term } from "../../components/Term";
import { ResourceView } from "../../features/ResourceView";
import { assign } from "../../state/param";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { BATCHES, CHECKPOINTS, GPUS, SHARDS, STAGES } from "./columns";
import { FrontierChart } from "./FrontierChart";
import { planParams } from "./params";

const batchParam = planParams.count("batch_size");
const checkpointParam = planParams.text("checkpoint");
const gpuParam = planParams.text("gpu");

interface Part {
  title: string;
  testId: string;
  open: Signal<boolean>;
  /** Of the route's parameter `also`. */
  also: string;
  shown: (data: PlanData) => ComponentChildren;
}

const PARTS: readonly Part[] = [
  { title: "Other batch sizes", testId: "plan-more-batches", open: signal(false), also: "batches", shown: batches },
  { title: "Other GPUs", testId: "plan-more-gpus", open: signal(false), also: "gpus", shown: gpus },
  {
    title: "Memory against time: activation checkpointing",
    testId: "plan-more-checkpoints",
    open: signal(false),
    also: "checkpoints",
    shown: checkpoints,
  },
  {
    title: "Several GPUs, deeper networks",
    testId: "plan-more-split",
    open: signal(false),
    also: "shards,stages,gpus_needed,deepest",
    shown: split,
  },
];

export function PlanParts({ data }: { data: PlanData }) {
  return (
    <>
      {PARTS.map((part) => (
        <More key={part.also} title={part.title} testId={part.testId} open={part.open}>
          {() => <Asked part={part} run={data.ref.run} />}
        </More>
      ))}
    </>
  );
}

function Asked({ part, run }: { part: Part; run: string }) {
  const query = { ...profileQuery(profileParam.value, rangeParam.value), ...planParams.query(), also: part.also };
  const resource = useResource("plan", query, run);
  return <ResourceView resource={resource}>{(data) => <div class="grid">{part.shown(data)}</div>}</ResourceView>;
}

function batches(data: PlanData) {
  return (
    <TableCard
      title={`Batch sizes on the ${data.gpu || "run's GPU"}`}
      testId="plan-batches"
      name={`plan by batch ${data.ref.run}`}
      plain
      columns={BATCHES}
      rows={data.batches}
      rowId={(row) => String(row.batch_size)}
      onSelect={(row) => assign(batchParam.to(row.batch_size))}
    />
  );
}

function gpus(data: PlanData) {
  return (
    <TableCard
      title="On other GPUs"
      testId="plan-gpus"
      name={`plan by GPU ${data.ref.run}`}
      plain
      columns={GPUS}
      rows={data.gpus}
      rowId={(row) => row.gpu}
      onSelect={(row) => assign(gpuParam.to(row.gpu))}
    />
  );
}

function checkpoints(data: PlanData) {
  if (data.checkpoints.length < 2) return <p class="muted">No set of modules saves memory.</p>;
  return (
    <TableCard
      title={<Term of="planCheckpoints">Sets of checkpointed modules</Term>}
      testId="plan-checkpoints"
      name={`plan by checkpoints ${data.ref.run}`}
      plain
      columns={CHECKPOINTS}
      rows={data.checkpoints}
      rowId={(row) => row.modules.join(",")}
      onSelect={(row) => assign(checkpointParam.to(row.modules.join(",") || null))}
    >
      <FrontierChart
        rows={data.checkpoints}
        capacity={data.capacity_mb}
        chosen={checkpointParam.value?.split(",") ?? []}
        onChoose={(modules) => assign(checkpointParam.to(modules.join(",") || null))}
      />
    </TableCard>
  );
}

function split(data: PlanData) {
  const { run } = data.ref;
  return (
    <>
      <dl class="figures">
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
      </dl>
      <TableCard
        title={<Term of="planShard">Over {data.shards[0]?.gpus} GPUs, each</Term>}
        testId="plan-shards"
        name={`plan by sharding ${run}`}
        plain
        columns={SHARDS}
        rows={data.shards}
        rowId={(row) => row.shard}
      />
      {data.stages.length > 1 && (
        <TableCard
          title={<Term of="planStages">Cut over {data.stages.length} GPUs</Term>}
          testId="plan-stages"
          name={`plan by stages ${run}`}
          plain
          columns={STAGES}
          rows={data.stages}
          rowId={(row) => row.modules[0] ?? ""}
        />
      )}
    </>
  );
}
