/** One of the numbers on top of a page: its name with its definition, the value, and what more there is to say below it. */
import type { Unit } from "../format/unit";
import { type Named, Term } from "./Term";
import { Value } from "./Value";

type FigureProps = Named<string> & {
  value: number | null;
  unit: Unit;
  /** A second line; "" for none. */
  under?: string;
  /** Where the value is null; "unknown" by default. */
  missing?: string | undefined;
  testId: string;
};

export function Figure({ value, unit, under = "", missing, testId, ...named }: FigureProps) {
  return (
    <div class="figure">
      <dt>{named.label === undefined ? <Term of={named.of} /> : <Term of={named.of}>{named.label}</Term>}</dt>
      <dd data-testid={testId} data-value={value === null ? "unknown" : String(value)}>
        <Value value={value} unit={unit} missing={missing} />
      </dd>
      {under && <dd class="figure-under muted">{under}</dd>}
    </div>
  );
}
