/** All runs: the choice of what they are held against, a bar for each, and the table. */
import { useMemo, useState } from "preact/hooks";
import type { ManyRunsPage, RunRow } from "../../api/types";
import { useProgress } from "../../api/useProgress";
import { Card } from "../../components/Card";
import { PageHead } from "../../components/PageHead";
import { ProgressLine } from "../../components/ProgressLine";
import { ResourceView } from "../../components/ResourceView";
import { DataTable } from "../../components/table/DataTable";
import { useView } from "../../state/store";
import { NO_PROFILE } from "../../state/viewState";
import { Switch } from "../modules/Switch";
import { COLUMNS } from "./columns";
import { Failed } from "./RunsPage";
import { RunBars, type BarScale } from "./RunBars";

export function RunsTable() {
  const { base } = useView().state;
  const resource = useProgress("many_runs", { base });
  return <ResourceView resource={resource}>{(data) => <Loaded data={data} />}</ResourceView>;
}

function Loaded({ data }: { data: ManyRunsPage }) {
  const { state, set } = useView();
  const [scale, setScale] = useState<BarScale>("time");
  // Sorting and filtering start anew with other rows: only then make them anew.
  const rows = useMemo(() => data.rows, [data]);
  const open = (row: RunRow): void => {
    const side = { ...NO_PROFILE, range: null };
    if (row.base && row.base !== row.ref.run) set({ page: "compare", a: { ...side, run: row.base }, b: { ...side, run: row.ref.run } });
    else set({ page: "overview", profile: { ...NO_PROFILE, run: row.ref.run }, range: null });
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
          <select value={state.base ?? ""} data-testid="runs-base" onChange={(event) => set({ base: event.currentTarget.value || null })}>
            <option value="">each model's FP32 run at its batch size</option>
            {state.base !== null && !known.includes(state.base) && <option value={state.base}>{state.base}</option>}
            {known.map((run) => (
              <option key={run} value={run}>
                {run}
              </option>
            ))}
          </select>
        </label>
        <span class="muted small">{data.note}</span>
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
      <Card title="All runs" actions={<span class="muted small">A run's name opens its comparison with the base.</span>}>
        <DataTable name="runs" testId="runs-table" columns={COLUMNS} rows={rows} rowId={(row) => row.ref.run} onSelect={open} totalRows={data.total_rows} />
      </Card>
    </>
  );
}
