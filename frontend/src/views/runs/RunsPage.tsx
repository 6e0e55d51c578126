/** The Runs page: all runs in one table, by model before and after mixed precision, or as lines over one fact. */
import type { FailedRun } from "../../api/types";
import { useView } from "../../state/store";
import { RUNS_TABS, type RunsTab } from "../../state/viewState";
import { Switch } from "../modules/Switch";
import { ByModel } from "./ByModel";
import { RunsTable } from "./RunsTable";
import { SweepView } from "./SweepView";

const LABELS: Record<RunsTab, string> = { all: "All runs", models: "By model", sweep: "Sweep" };

export function RunsPage() {
  const { state, set } = useView();
  return (
    <>
      <div class="runs-tabs" data-testid="runs-tabs">
        <Switch label="How the runs are shown" value={state.runsTab} choices={RUNS_TABS.map((tab) => [tab, LABELS[tab]] as const)} onChange={(runsTab) => set({ runsTab })} />
      </div>
      {state.runsTab === "all" && <RunsTable />}
      {state.runsTab === "models" && <ByModel />}
      {state.runsTab === "sweep" && <SweepView />}
    </>
  );
}

/** The runs whose profiles cannot be read. */
export function Failed({ failed }: { failed: FailedRun[] }) {
  if (failed.length === 0) return null;
  return (
    <ul class="warnings" data-testid="runs-failed">
      {failed.map((one) => (
        <li key={one.run}>
          <strong>{one.run}</strong>: {one.why}
        </li>
      ))}
    </ul>
  );
}
