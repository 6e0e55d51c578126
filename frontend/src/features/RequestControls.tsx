/** Controls of a request's options: each writes a parameter of the address, and the page is asked again. */
import type { ComponentChildren } from "preact";
import { assign, type Param } from "../state/param";
import type { RequestOption, RequestParams } from "../state/requestParams";

interface RequestControlsProps {
  params: RequestParams;
  /** By the name of an option its number in the run; one that is null there is left out. */
  recorded: Readonly<Record<string, number | null>>;
  /** By the name of an option more values to choose from. */
  listed?: Readonly<Record<string, readonly string[]>>;
  testId: string;
  /** After the controls. */
  children?: ComponentChildren;
}

export function RequestControls({ params, recorded, listed = {}, testId, children }: RequestControlsProps) {
  return (
    <div class="plan-controls" data-testid={testId}>
      {params.options
        .filter((option) => params.applies(option) && recorded[option.name] !== null)
        .map((option) =>
          option.kind === "count" ? (
            <Input
              key={option.name}
              option={option}
              value={params.count(option.name).value ?? recorded[option.name] ?? option.first}
              onChange={(text) => assign(params.count(option.name).to(positive(text)))}
            />
          ) : option.kind === "number" ? (
            <Input
              key={option.name}
              option={option}
              value={params.text(option.name).value}
              onChange={(text) => assign(params.text(option.name).to(text || null))}
            />
          ) : (
            <Choice
              key={option.name}
              option={option}
              param={params.text(option.name)}
              listed={listed[option.name] ?? []}
            />
          ),
        )}
      {children}
    </div>
  );
}

interface InputProps {
  option: RequestOption;
  value: number | string | null;
  onChange: (text: string) => void;
}

function Input({ option, value, onChange }: InputProps) {
  const whole = option.kind === "count";
  return (
    <label class="picker">
      <span>{option.label}</span>
      <input
        type="number"
        min={whole ? 1 : 0}
        step={whole ? 1 : "any"}
        value={value ?? ""}
        data-testid={`option-${option.name}`}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}

const positive = (text: string): number | null => (/^[1-9]\d{0,11}$/.test(text) ? Number(text) : null);

interface ChoiceProps {
  option: RequestOption;
  param: Param<string | null>;
  listed: readonly string[];
}

function Choice({ option, param, listed }: ChoiceProps) {
  const value = param.value ?? "";
  const choices = [...option.choices, ...listed.map((name) => [name, name])];
  // Such as modules that a table of the page has chosen.
  if (!choices.some(([known]) => known === value)) choices.push([value, value]);
  return (
    <label class="picker">
      <span>{option.label}</span>
      <select
        value={value}
        data-testid={`option-${option.name}`}
        onChange={(event) => assign(param.to(event.currentTarget.value || null))}
      >
        {choices.map(([known, words]) => (
          <option key={known} value={known}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
