/** The page Energy: joules of a step as measured, where they go, what other configurations would take, and an epoch. */
import * as columns from "../../api/columns";
import type { EnergyPage as EnergyData } from "../../api/types";
import { NoteList } from "../../components/NoteList";
import { CodeBlock } from "../../components/CodeBlock";
import { Figure } from "../../components/Figure";
import { EmptyMessage } from "../../components/Message";
import { tableColumns } from "../../components/table/declared";
import { TableCard } from "../../components/table/TableCard";
import { Term } from "../../components/Term";
import { PageHead } from "../../features/PageHead";
import { RequestControls } from "../../features/RequestControls";
import { formatInterval, formatJoules, formatPercent, threeDigits } from "../../format/number";
import { energyParams } from "./params";

const PARTS = tableColumns(columns.EnergyPart);
const MODULES = tableColumns(columns.EnergyModule);
const OPS = tableColumns(columns.EnergyOp);
const CHOICES = tableColumns(columns.EnergyChoice);

const HOW_TO_RECORD = `with tb_dlprof_plugin.profile("runs/fp32", model=model) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()  # for some three seconds after the recorded steps`;

export function EnergyPage({ data }: { data: EnergyData }) {
  if (data.joules_per_step === null) return <NotRecorded data={data} />;
  const run = data.ref.run;
  return (
    <>
      <PageHead title="Energy" headline={data.headline} range={data.range} />
      <EnergyFigures data={data} />
      <Epoch data={data} />
      {data.parts.length > 0 && (
        <div class="grid grid-halves">
          <TableCard
            title={<Term of="energyPart">Where a step's energy goes</Term>}
            testId="energy-parts"
            name={`energy ${run}`}
            plain
            columns={PARTS}
            rows={data.parts}
            rowId={(row) => row.kind}
          />
          {data.modules.length > 1 && (
            <TableCard
              title={<Term of="energyModule">By module</Term>}
              testId="energy-modules"
              name={`energy by module ${run}`}
              columns={MODULES}
              rows={data.modules}
              rowId={(row) => row.path}
            />
          )}
        </div>
      )}
      <div class="grid">
        {data.choices.length > 1 && (
          <TableCard
            title={<Term of="energyChoice">In other precisions and batch sizes</Term>}
            testId="energy-choices"
            name={`energy of choices ${run}`}
            plain
            columns={CHOICES}
            rows={data.choices}
            rowId={(row) => `${row.precision} ${row.batch_size}`}
          />
        )}
        <TableCard
          title="By op"
          testId="energy-ops"
          name={`energy by op ${run}`}
          columns={OPS}
          rows={data.ops}
          rowId={(row) => row.id}
        />
      </div>
      <Reasons data={data} />
    </>
  );
}

function EnergyFigures({ data }: { data: EnergyData }) {
  const limit = data.power_limit_watts === null ? "" : `of ${threeDigits(data.power_limit_watts)} W`;
  return (
    <dl class="figures">
      <Figure
        of="joulesPerStep"
        unit="joules"
        value={data.joules_per_step}
        under={
          data.low_joules === null || data.high_joules === null
            ? ""
            : formatInterval(data.low_joules, data.high_joules, formatJoules)
        }
        testId="energy-step"
      />
      <Figure of="joulesPerSample" unit="joules" value={data.joules_per_sample} testId="energy-sample" />
      <Figure of="gpuWatts" unit="watts" value={data.watts} under={limit} testId="energy-watts" />
      <Figure of="idleWatts" label="Power at rest" unit="watts" value={data.idle_watts} testId="energy-idle" />
      <Figure of="idleShare" label="At rest" unit="percent" value={data.idle_percent} testId="energy-idle-share" />
    </dl>
  );
}

/** The inputs, and an epoch's energy, cost and CO2 by them. */
function Epoch({ data }: { data: EnergyData }) {
  const epoch = data.epoch;
  return (
    <RequestControls
      params={energyParams}
      recorded={epoch === null ? {} : { steps_per_epoch: epoch.steps }}
      testId="energy-epoch"
    >
      {epoch !== null && (
        <p>
          <Term of="energyEpoch">An epoch</Term>
          {epoch.processes > 1 ? ` of ${epoch.processes} processes` : ""}: {threeDigits(epoch.kwh)} kWh
          {epoch.cost === null ? "" : `, costs ${threeDigits(epoch.cost)}`}
          {epoch.co2_grams === null ? "" : `, ${threeDigits(epoch.co2_grams)} g of CO₂`}
        </p>
      )}
    </RequestControls>
  );
}

/** What is not known, and why; how far the parts are off. */
function Reasons({ data }: { data: EnergyData }) {
  const residual = data.residual_percent ?? 0;
  const parts =
    data.parts.length > 0
      ? [
          `The parts of a step are estimated: from kernels alone, its energy would be ${formatPercent(Math.abs(residual))} ${residual < 0 ? "below" : "above"} the counter.`,
        ]
      : [];
  const choices = data.choices.filter((row) => row.why !== "").map((row) => `${row.precision}: ${row.why}`);
  return <NoteList testId="energy-notes" notes={[...parts, ...Object.values(data.unknown), ...choices]} />;
}

function NotRecorded({ data }: { data: EnergyData }) {
  return (
    <>
      <PageHead title="Energy" headline={data.headline} />
      <EmptyMessage>
        <p>
          The hook reads the energy counter of the GPU's driver while the training runs without the profiler. It needs
          some seconds of steps.
        </p>
        <CodeBlock code={HOW_TO_RECORD} label="How to record energy" />
      </EmptyMessage>
    </>
  );
}
