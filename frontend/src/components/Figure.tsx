/** One of the numbers on top of a page: its name with its definition, the value, and what more there is to say below it. */
import type { DefinitionKey } from "../format/definitions";
import type { Unit } from "../format/unit";
import { Term } from "./Term";
import { Value } from "./Value";

interface FigureProps {
  of: DefinitionKey;
  label: string;
  value: number | null;
  unit: Unit;
  /** A second line; "" for none. */
  under?: string;
  /** Where the value is null; "unknown" by default. */
  missing?: string | undefined;
  testId: string;
}

export function Figure({ of, label, value, unit, under = "", missing, testId }: FigureProps) {
  return (
    <div class="figure">
      <dt>
        <Term of={of}>{label}</Term>
      </dt>
      <dd data-testid={testId} data-value={value === null ? "unknown" : String(value)}>
        <Value value={value} unit={unit} missing={missing} />
      </dd>
      {under && <dd class="figure-under muted">{under}</dd>}
    </div>
  );
}
