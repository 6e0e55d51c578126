/** What the page "What fits" keeps in the address: the configuration that is asked for; null is as recorded. */
import { choiceParam, indexParam, textParam } from "../../state/param";

export const PRECISIONS = ["", "fp16", "bf16"] as const;
export const OPTIMIZERS = ["sgd", "momentum", "adam", "adamw", "adamw_fused", "adamw_loop"] as const;

export const batchParam = indexParam("batch", { ofRun: true });
export const precisionParam = choiceParam("autocast", PRECISIONS);
export const optimizerParam = textParam("optimizer", {}, /^[a-z_]+$/);
export const checkpointParam = textParam("checkpoint", { ofRun: true });
export const gpuParam = textParam("gpu");

export const PLAN_PARAMS = [batchParam, precisionParam, optimizerParam, checkpointParam, gpuParam];
