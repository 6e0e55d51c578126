/** The page DataLoader: the pipeline of a batch with the stage that limits, and the step with other numbers of workers. */
import * as columns from "../../api/columns";
import type { LoaderPage as LoaderData, LoaderStage } from "../../api/types";
import { Figure } from "../../components/Figure";
import { NoteList } from "../../components/NoteList";
import { TableCard } from "../../components/table/TableCard";
import { tableColumns } from "../../components/table/declared";
import { PageHead } from "../../features/PageHead";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";

const STAGES = tableColumns(columns.LoaderStage);
const WORKERS = tableColumns(columns.WorkersRow);
const TRANSFORMS = tableColumns(columns.TransformRow);

export function LoaderPage({ data }: { data: LoaderData }) {
  const run = data.ref.run;
  return (
    <>
      <PageHead title="DataLoader" headline={data.headline} />
      {data.batches > 0 && <LoaderFigures data={data} />}
      <NoteList testId="loader-hints" notes={data.hints} />
      <div class="grid">
        <TableCard
          title="The way of a batch"
          class="wide"
          testId="loader-pipeline"
          name={`loader stages ${run}`}
          columns={STAGES}
          rows={data.stages}
          rowId={(row) => row.key}
        >
          <Pipeline data={data} />
        </TableCard>
        <TableCard
          title="The step with other numbers of workers, simulated"
          testId="loader-workers"
          name={`loader workers ${run}`}
          columns={WORKERS}
          rows={data.workers}
          rowId={(row) => String(row.workers)}
        />
        <TableCard
          title="Transforms"
          testId="loader-transforms"
          name={`loader transforms ${run}`}
          columns={TRANSFORMS}
          rows={data.transforms}
          rowId={(row) => row.name}
        />
      </div>
    </>
  );
}

function LoaderFigures({ data }: { data: LoaderData }) {
  return (
    <dl class="figures">
      <Figure
        of="loaderWaits"
        label="Waiting for batches"
        unit="percent"
        value={data.waiting_percent}
        testId="loader-waiting"
      />
      <Figure of="loaderWait" label="Median wait" unit="ns" value={data.wait_ns} testId="loader-wait" />
      {data.workers_now !== 0 && (
        <Figure of="loaderReady" label="Batches ready" unit="count" value={data.ready} testId="loader-ready" />
      )}
      <Figure
        of="loaderWorkers"
        label="Workers needed"
        unit="count"
        value={data.workers_advised}
        under={data.workers_now === null ? "" : `now ${data.workers_now}`}
        testId="loader-advised"
      />
      <Figure of="loaderTensors" label="Tensors of a batch" unit="count" value={data.tensors} testId="loader-tensors" />
      <Figure of="loaderBytes" label="Size of a batch" unit="bytes" value={data.batch_bytes} testId="loader-bytes" />
      <Figure
        of="loaderFirst"
        label="First batch"
        unit="ns"
        value={data.first_batch_ns}
        under={data.start_method}
        testId="loader-first"
      />
      <Figure of="loaderBatches" label="Measured" unit="count" value={data.batches} testId="loader-batches" />
    </dl>
  );
}

/** Stages from left to right; what limits is marked, and the wait stands before the training. */
function Pipeline({ data }: { data: LoaderData }) {
  const waits = data.waiting_percent;
  return (
    <ol class="pipeline">
      {data.stages.map((stage) => (
        <li key={stage.key} class={stage.limits ? "pipeline-stage limits" : "pipeline-stage"}>
          {stage.key === "train" && waits !== null && (
            <span class="pipeline-wait muted">waits {formatPercent(waits)}</span>
          )}
          <strong>{stage.stage}</strong>
          <span>{rate(stage)}</span>
          <span class="muted small">
            {formatNs(stage.batch_ns)}
            {stage.lanes > 1 ? ` in each of ${stage.lanes}` : ""}
          </span>
          {stage.limits && <span class="small">sets the pace</span>}
        </li>
      ))}
    </ol>
  );
}

const rate = ({ per_second: found }: LoaderStage): string =>
  found === null
    ? "unknown"
    : `${found >= 100 ? Math.round(found).toLocaleString("en") : found.toPrecision(3)} batches/s`;
