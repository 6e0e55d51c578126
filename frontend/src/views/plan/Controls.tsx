/** The configuration that is asked for: each control writes a parameter of the address, and the page is asked again. */
import type { ComponentChildren } from "preact";
import { assign } from "../../state/param";
import {
  batchParam,
  checkpointParam,
  gpuParam,
  OPTIMIZERS,
  optimizerParam,
  PRECISIONS,
  precisionParam,
} from "./params";

export function Controls({ batch, gpus }: { batch: number | null; gpus: readonly string[] }) {
  return (
    <div class="plan-controls" data-testid="plan-controls">
      <label class="picker">
        <span>Batch</span>
        <input
          type="number"
          min="1"
          value={batchParam.value ?? batch ?? ""}
          data-testid="plan-batch"
          onChange={(event) => assign(batchParam.to(positive(event.currentTarget.value)))}
        />
      </label>
      <Select
        label="Precision"
        testId="plan-precision"
        value={precisionParam.value}
        onChange={(value) => assign(precisionParam.to(PRECISIONS.find((known) => known === value) ?? ""))}
      >
        <option value="">as recorded</option>
        <option value="bf16">BF16 (autocast)</option>
        <option value="fp16">FP16 (autocast)</option>
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
