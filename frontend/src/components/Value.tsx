/** One number with its unit: rounded text, exact value on hover. Null is "unknown", never 0. */
import { exactUnit, formatUnit, type Unit } from "../format/unit";
import { perStep, unitPerStep, useIterations } from "./sums";

interface ValueProps {
  value: number | null;
  unit: Unit;
  /** What stands for null. */
  missing?: string | undefined;
}

export function Value({ value, unit, missing = "unknown" }: ValueProps) {
  if (value === null) return <span class="missing">{missing}</span>;
  return (
    <span class="num" title={exactUnit(value, unit)}>
      {formatUnit(value, unit)}
    </span>
  );
}

/** A sum over the selected iterations, shown per step or as it is. */
export function Sum({ value, unit, ...rest }: ValueProps) {
  const iterations = useIterations();
  return <Value value={perStep(value, iterations)} unit={unitPerStep(unit, iterations)} {...rest} />;
}

/** A text, or "unknown" in its place when it is empty. */
export function Text({ value, missing = "unknown" }: { value: string | null; missing?: string }) {
  return value ? value : <span class="missing">{missing}</span>;
}
