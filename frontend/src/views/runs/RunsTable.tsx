/** All runs: the choice of their base, a bar for each, and the table. */
import { useMemo, useState } from "preact/hooks";
import type { ManyRunsPage, RunRow } from "../../api/types";
import { useProgress } from "../../api/useProgress";
import { Card } from "../../components/Card";
import { NoteList } from "../../components/NoteList";
import { PageHead } from "../../features/PageHead";
import { ProgressLine } from "../../components/ProgressLine";
import { ResourceView } from "../../features/ResourceView";
import { DataTable } from "../../components/table/DataTable";
import { Switch } from "../../components/Switch";
import { COLUMNS } from "./columns";
import { Failed } from "./Failed";
import { RunBars, type BarScale } from "./RunBars";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { NO_PROFILE } from "../../state/profile";
import { baseParam, candidateParam } from "../compare/params";
import { commonBaseParam, runsTable } from "./params";

export function RunsTable() {
  const base = commonBaseParam.value;
  const resource = useProgress("many_runs", { base });
  return <ResourceView resource={resource}>{(data) => <Loaded data={data} />}</ResourceView>;
}

function Loaded({ data }: { data: ManyRunsPage }) {
  const [scale, setScale] = useState<BarScale>("time");
  // Sorting and filtering run again for another array of rows.
  const rows = useMemo(() => data.rows, [data]);
  const open = (row: RunRow): void => {
    const side = { ...NO_PROFILE, range: null };
    if (row.base && row.base !== row.ref.run)
      goTo("compare", baseParam.to({ ...side, run: row.base }), candidateParam.to({ ...side, run: row.ref.run }));
    else goTo("overview", profileParam.to({ ...NO_PROFILE, run: row.ref.run }), rangeParam.to(null));
  };
  const known = data.rows.map((row) => row.ref.run);
  return (
    <>
      <PageHead title="Runs" headline={data.headline}>
        <ProgressLine done={data.done} total={data.total} what="runs" />
      </PageHead>
      <Failed failed={data.failed} />
      <div class="runs-bar">
        <label class="picker picker-wide">
          Base
          <select
            value={commonBaseParam.value ?? ""}
            data-testid="runs-base"
            onChange={(event) => assign(commonBaseParam.to(event.currentTarget.value || null))}
          >
            <option value="">each model's FP32 run at its batch size</option>
            {commonBaseParam.value !== null && !known.includes(commonBaseParam.value) && (
              <option value={commonBaseParam.value}>{commonBaseParam.value}</option>
            )}
            {known.map((run) => (
              <option key={run} value={run}>
                {run}
              </option>
            ))}
          </select>
        </label>
      </div>
      {data.rows.length > 0 && (
        <Card
          title={scale === "time" ? "Step time by run" : "Step time, base = 1"}
          testId="run-bars"
          actions={
            <Switch
              label="Scale of the bars"
              value={scale}
              choices={[
                ["time", "time"],
                ["ratio", "against the base"],
              ]}
              onChange={setScale}
            />
          }
        >
          <RunBars rows={rows} scale={scale} onOpen={open} />
        </Card>
      )}
      <Card
        title="All runs"
        actions={<span class="muted small">A run's name opens its comparison with the base.</span>}
      >
        <DataTable
          name="runs"
          testId="runs-table"
          options={runsTable}
          columns={COLUMNS}
          rows={rows}
          rowId={(row) => row.ref.run}
          onSelect={open}
          totalRows={data.total_rows}
        />
      </Card>
      <NoteList notes={[data.note]} />
    </>
  );
}
