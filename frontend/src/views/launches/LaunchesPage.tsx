/** The Launches page: who sets the pace, why the GPU was idle, launch delays and synchronising calls. */
import { useMemo, useState } from "preact/hooks";
import type { LaunchesPage as LaunchesData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { ViewNote } from "../explore/ViewNote";
import { Card } from "../../components/Card";
import { IterationBars, stepLine } from "../../features/chart/IterationBars";
import { Legend } from "../../components/Legend";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { UnitNote } from "../../features/UnitNote";
import { PartsBar } from "../../components/PartsBar";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { formatPercent } from "../../format/number";
import { gapColumns, KERNEL_COLUMNS, paceColumns, SYNC_COLUMNS } from "./columns";
import { DelayNotes, LaunchFigures } from "./LaunchFigures";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { kernelParam, opParam, rangeParam } from "../../state/sharedParams";
import { eventParam, iterationParam } from "../timeline/params";
import { paceTable, gapsTable, syncsTable, delaysTable } from "./params";

const BUSY: ReadonlySet<string> = new Set(["busy"]);
const NONE: ReadonlySet<string> = new Set();
const AS_RECORDED = <span class="muted small">as recorded</span>;

export function LaunchesPage({ data }: { data: LaunchesData }) {
  if (!data.has_gpu) {
    return <PageHead title="Launches" headline={data.headline} range={data.range} />;
  }
  return (
    <>
      <PageHead
        title="Launches"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      <ViewNote page="launches" hasGpu={data.has_gpu} />
      <LaunchFigures figures={data.figures} step={data.step} stepWords={data.step_words} />
      <IdleTime data={data} />
      <Iterations data={data} />
      <Tables data={data} />
      <DelayNotes figures={data.figures} />
    </>
  );
}

function IdleTime({ data }: { data: LaunchesData }) {
  // A GPU that never waits has no cause to show.
  if (data.idle_by_cause.every(({ value_ns }) => value_ns === 0)) return null;
  const causes = new Map(data.bar_categories.map(({ key, definition }) => [key, definition]));
  const kinds = new Map(data.gap_kinds.map(({ key, definition }) => [key, definition]));
  // Where several activities are one cause.
  const detail = data.idle_by_cause.flatMap(({ key, label }) => {
    const parts = data.idle_by_activity.filter(({ cause }) => cause === key);
    const texts = parts.map(
      (part) => `${part.label.toLowerCase().replace("cuda", "CUDA")} ${formatPercent(part.percent)}`,
    );
    return parts.length > 1 || (key === "idle" && parts.length > 0) ? [`${label}: ${texts.join(", ")}`] : [];
  });
  const over = <UnitNote range={data.range} more={data.gpus.length > 1 ? `, ${data.gpus.length} GPUs` : ""} />;
  return (
    <div class="grid grid-halves">
      <Card title={<Term of="idleActivity">Why the GPU is idle</Term>} actions={over} testId="launches-causes">
        <PartsBar name="Why the GPU is idle" slices={data.idle_by_cause} context="account" definitions={causes} />
        {detail.length > 0 && <p class="muted small">In detail, {detail.join("; ")}.</p>}
      </Card>
      <Card title={<Term of="idleKind">When the next work was launched</Term>} actions={over} testId="launches-kinds">
        <PartsBar
          name="When the work after a gap was launched"
          slices={data.idle_by_kind}
          context="gap_kind"
          definitions={kinds}
        />
      </Card>
    </div>
  );
}

function Iterations({ data }: { data: LaunchesData }) {
  const [withBusy, setWithBusy] = useState(false);
  const shown = data.bar_categories.filter(({ key, recorded }) => recorded && (withBusy || !BUSY.has(key)));
  const legend = shown.map(({ key, label }) => ({ key, label, value_ns: null, percent: null }));
  const definitions = new Map(shown.map(({ key, definition }) => [key, definition]));
  return (
    <div class="grid">
      <Card
        title={<Term of="idleActivity">Idle GPU time by iteration</Term>}
        testId="launches-iterations"
        actions={
          <label class="muted small">
            <input
              type="checkbox"
              checked={withBusy}
              onChange={(event) => setWithBusy(event.currentTarget.checked)}
              data-testid="launches-busy"
            />{" "}
            with the GPU's busy time
          </label>
        }
      >
        {data.bars_note && <p class="muted small">{data.bars_note}</p>}
        <IterationBars
          name="Idle GPU time by iteration"
          iterations={data.bars}
          categories={data.bar_categories}
          context="account"
          hidden={withBusy ? NONE : BUSY}
          {...(withBusy ? { stepNs: stepLine(data.step) } : {})}
          onSelect={(range) => assign(rangeParam.to(range))}
        >
          <Legend slices={legend} definitions={definitions} context="account" plain />
        </IterationBars>
      </Card>
    </div>
  );
}

function Tables({ data }: { data: LaunchesData }) {
  const several = data.gpus.length > 1;
  const filter = usePageFilter();
  const ownGaps = useOwn(data.gaps, filter, (row, own) => own.ops.has(row.op_id) && own.kernels.has(row.kernel_id));
  const syncs = useOwn(data.syncs, filter, (row, own) => own.ops.has(row.op_id));
  const kernels = useOwn(data.kernels, filter, (row, own) => own.kernels.has(row.id));
  const causes = data.idle_by_cause;
  const pace = useMemo(() => paceColumns(causes, several), [causes, several]);
  const gaps = useMemo(() => gapColumns(causes, data.gap_kinds, several), [causes, data.gap_kinds, several]);
  const { run } = data.ref;
  return (
    <div class="launches-tables">
      <FilterChip
        filter={filter}
        shown={kernels.length}
        known={data.kernels.length}
        of="launched kernels, with their gaps and waits"
        none="It launched no kernel in these iterations."
      />
      <Card title={<Term of="pace">Pace by iteration</Term>} actions={AS_RECORDED}>
        <DataTable
          name={`pace ${run}`}
          testId="launches-pace"
          options={paceTable}
          columns={pace}
          rows={data.iterations}
          rowId={(row) => `${row.index} ${row.gpu}`}
          onSelect={(row) => assign(rangeParam.to({ first: row.index, last: row.index }))}
          totalRows={data.total_iterations}
        />
      </Card>
      <Card title={<Term of="gapDuration">Largest idle gaps</Term>} actions={AS_RECORDED}>
        <DataTable
          name={`idle gaps ${run}`}
          testId="launches-gaps"
          options={gapsTable}
          columns={gaps}
          rows={ownGaps}
          rowId={(row) => `${row.index} ${row.gpu} ${row.start_ns}`}
          onSelect={(row) =>
            goTo(
              "timeline",
              iterationParam.to(row.index),
              eventParam.to(row.event),
              opParam.to(null),
              kernelParam.to(null),
            )
          }
          totalRows={ownGaps === data.gaps ? data.total_gaps : ownGaps.length}
        />
      </Card>
      <Card title={<Term of="syncCalls">Synchronising calls</Term>} actions={AS_RECORDED}>
        {data.syncs.length > 0 ? (
          <DataTable
            name={`synchronising calls ${run}`}
            testId="launches-syncs-table"
            options={syncsTable}
            columns={SYNC_COLUMNS}
            rows={syncs}
            rowId={(row) => [row.call, row.op_id, row.inner_op, row.module, row.role, row.kind].join(" ")}
            selectable={(row) => row.op_id !== ""}
            onSelect={(row) => row.op_id && goTo("ops", opParam.to(row.op_id))}
            totalRows={syncs === data.syncs ? data.total_syncs : syncs.length}
          />
        ) : (
          <p class="muted">No call in the selected iterations made the CPU wait for the GPU.</p>
        )}
      </Card>
      <Card title={<Term of="launchDelay">Launch delay by kernel</Term>} actions={AS_RECORDED}>
        <DataTable
          name={`launch delays ${run}`}
          testId="launches-kernels"
          options={delaysTable}
          columns={KERNEL_COLUMNS}
          rows={kernels}
          rowId={(row) => row.id}
          onSelect={(row) => goTo("kernels", kernelParam.to(row.id))}
          totalRows={kernels === data.kernels ? data.total_kernels : kernels.length}
        />
      </Card>
    </div>
  );
}
