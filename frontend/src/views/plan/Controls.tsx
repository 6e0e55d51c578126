/** The configuration that is asked for: each control writes a parameter of the address, and the page is asked again. */
import type { ComponentChildren } from "preact";
import { assign, type Param } from "../../state/param";
import {
  batchParam,
  checkpointParam,
  gpuParam,
  gpusParam,
  lengthParam,
  offloadParam,
  OPTIMIZERS,
  optimizerParam,
  PRECISIONS,
  precisionParam,
  RELUS,
  reluParam,
  SHARDS,
  shardParam,
  sideParam,
} from "./params";

interface ControlsProps {
  batch: number | null;
  /** Tokens of a sample, and the side of an image; null where the model has none. */
  length: number | null;
  side: number | null;
  gpus: readonly string[];
}

export function Controls({ batch, length, side, gpus }: ControlsProps) {
  return (
    <div class="plan-controls" data-testid="plan-controls">
      <Count label="Batch" param={batchParam} known={batch} testId="plan-batch" />
      {length !== null && <Count label="Tokens" param={lengthParam} known={length} testId="plan-length" />}
      {side !== null && <Count label="Image side" param={sideParam} known={side} testId="plan-side" />}
      <Select
        label="Precision"
        testId="plan-precision"
        value={precisionParam.value}
        onChange={(value) => assign(precisionParam.to(PRECISIONS.find((known) => known === value) ?? ""))}
      >
        <option value="">as recorded</option>
        <option value="bf16">BF16 (autocast)</option>
        <option value="fp16">FP16 (autocast)</option>
        <option value="fp8">FP8 (matrix products)</option>
      </Select>
      <Select
        label="Optimizer"
        testId="plan-optimizer"
        value={optimizerParam.value ?? ""}
        onChange={(value) => assign(optimizerParam.to(value || null))}
      >
        <option value="">as recorded</option>
        {OPTIMIZERS.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Select>
      <Select
        label="Checkpoints"
        testId="plan-checkpoint"
        value={checkpointParam.value === "auto" ? "auto" : ""}
        onChange={(value) => assign(checkpointParam.to(value || null))}
      >
        <option value="">
          {checkpointParam.value && checkpointParam.value !== "auto" ? "chosen modules" : "none"}
        </option>
        <option value="auto">the cheapest that fit</option>
      </Select>
      <Select
        label="Shared by"
        testId="plan-shard"
        value={shardParam.value}
        onChange={(value) => assign(shardParam.to(SHARDS.find((known) => known === value) ?? ""))}
      >
        <option value="">one GPU</option>
        {SHARDS.filter((name) => name !== "").map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Select>
      {shardParam.value && <Count label="GPUs" param={gpusParam} known={2} testId="plan-ranks" />}
      <Select
        label="On the CPU"
        testId="plan-offload"
        value={offloadParam.value ?? ""}
        onChange={(value) => assign(offloadParam.to(value || null))}
      >
        <option value="">nothing</option>
        <option value="optimizer">optimizer states</option>
        {offloadParam.value && offloadParam.value !== "optimizer" && (
          <option value={offloadParam.value}>{offloadParam.value}</option>
        )}
      </Select>
      <Select
        label="ReLU"
        testId="plan-relu"
        value={reluParam.value}
        onChange={(value) => assign(reluParam.to(RELUS.find((known) => known === value) ?? ""))}
      >
        <option value="">as recorded</option>
        <option value="inplace">in place</option>
        <option value="behind_pool">behind max pooling</option>
      </Select>
      <Select
        label="GPU"
        testId="plan-gpu"
        value={gpuParam.value ?? ""}
        onChange={(value) => assign(gpuParam.to(value || null))}
      >
        <option value="">the run's own</option>
        {gpus.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Select>
    </div>
  );
}

interface CountProps {
  label: string;
  param: Param<number | null>;
  /** Shown where nothing else is asked for. */
  known: number | null;
  testId: string;
}

function Count({ label, param, known, testId }: CountProps) {
  return (
    <label class="picker">
      <span>{label}</span>
      <input
        type="number"
        min="1"
        value={param.value ?? known ?? ""}
        data-testid={testId}
        onChange={(event) => assign(param.to(positive(event.currentTarget.value)))}
      />
    </label>
  );
}

const positive = (text: string): number | null => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : null);

interface SelectProps {
  label: string;
  testId: string;
  value: string;
  onChange: (value: string) => void;
  children: ComponentChildren;
}

function Select({ label, testId, value, onChange, children }: SelectProps) {
  return (
    <label class="picker">
      <span>{label}</span>
      <select value={value} data-testid={testId} onChange={(event) => onChange(event.currentTarget.value)}>
        {children}
      </select>
    </label>
  );
}
