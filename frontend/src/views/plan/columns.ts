/** The tables of the page "What fits". */
import * as columns from "../../api/columns";
import { tableColumns } from "../../components/table/declared";

export const BATCHES = tableColumns(columns.PlanRow, { gpu: null, largest_batch: null });
export const GPUS = tableColumns(columns.PlanRow, { batch_size: null, peak_allocated_mb: null });
export const FIGURES = tableColumns(columns.PlanFigure);
export const SHARDS = tableColumns(columns.ShardRow);
export const CHECKPOINTS = tableColumns(columns.CheckpointRow, {
  modules: { value: ({ modules }) => (modules.length > 0 ? `${modules.length}, with ${modules.at(-1)}` : null) },
});
export const STAGES = tableColumns(columns.StageRow, {
  modules: { value: ({ modules }) => [...new Set([modules[0], modules.at(-1)])].join(" to ") },
});
