/** The Runs page: all runs in one table, by model before and after mixed precision, or as lines over one fact. The header tells which. */
import { ByModel } from "./ByModel";
import { RunsTable } from "./RunsTable";
import { SweepView } from "./SweepView";
import { tabParam } from "./params";

export function RunsPage() {
  return (
    <div class="runs">
      {tabParam.value === "all" && <RunsTable />}
      {tabParam.value === "models" && <ByModel />}
      {tabParam.value === "sweep" && <SweepView />}
    </div>
  );
}
