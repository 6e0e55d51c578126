/** What the page "What fits" keeps in the address: the configuration that is asked for; null is as recorded. */
import { choiceParam, indexParam, textParam } from "../../state/param";

export const PRECISIONS = ["", "fp16", "bf16", "fp8"] as const;
export const SHARDS = ["", "ddp", "zero1", "zero2", "zero3", "fsdp2", "tp"] as const;
export const OPTIMIZERS = ["sgd", "momentum", "adam", "adamw", "adamw_fused", "adamw_loop", "adamw_8bit"] as const;

export const batchParam = indexParam("batch", { ofRun: true });
export const precisionParam = choiceParam("autocast", PRECISIONS);
export const optimizerParam = textParam("optimizer", {}, /^[a-z0-9_]+$/);
export const checkpointParam = textParam("checkpoint", { ofRun: true });
export const gpuParam = textParam("gpu");
export const shardParam = choiceParam("shard", SHARDS);
export const RELUS = ["", "inplace", "behind_pool"] as const;
export const lengthParam = indexParam("length", { ofRun: true });
export const sideParam = indexParam("side", { ofRun: true });
export const offloadParam = textParam("offload", { ofRun: true });
export const reluParam = choiceParam("relu", RELUS);
export const gpusParam = indexParam("gpus");

export const PLAN_PARAMS = [
  batchParam,
  precisionParam,
  optimizerParam,
  checkpointParam,
  gpuParam,
  shardParam,
  gpusParam,
  lengthParam,
  sideParam,
  offloadParam,
  reluParam,
];
