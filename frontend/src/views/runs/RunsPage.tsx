/** The Runs page: all runs in one table, by model before and after mixed precision, or as lines over one fact. */
import { Switch } from "../../components/Switch";
import { ByModel } from "./ByModel";
import { RunsTable } from "./RunsTable";
import { SweepView } from "./SweepView";
import { assign } from "../../state/param";
import { RUNS_TABS, type RunsTab, tabParam } from "./params";

const LABELS: Record<RunsTab, string> = { all: "All runs", models: "By model", sweep: "Sweep" };

export function RunsPage() {
  return (
    <>
      <div class="runs-tabs" data-testid="runs-tabs">
        <Switch
          label="How the runs are shown"
          value={tabParam.value}
          choices={RUNS_TABS.map((tab) => [tab, LABELS[tab]] as const)}
          onChange={(runsTab) => assign(tabParam.to(runsTab))}
        />
      </div>
      {tabParam.value === "all" && <RunsTable />}
      {tabParam.value === "models" && <ByModel />}
      {tabParam.value === "sweep" && <SweepView />}
    </>
  );
}
