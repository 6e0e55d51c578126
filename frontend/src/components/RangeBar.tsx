/** An interval with its expected value on a line from 0; a reference line, and a second value next to the first where there is one. */
interface RangeBarProps {
  /** End of the line, in the unit of all values. */
  max: number;
  low: number;
  value: number;
  high: number;
  colour: string;
  /** A thin line across, such as 1 for "as now". */
  reference?: number;
  /** What was measured, with the bounds of an estimate. */
  measured?: { low: number; value: number; high: number };
}

export function RangeBar({ max, low, value, high, colour, reference, measured }: RangeBarProps) {
  const place = (at: number): string => `${Math.min(100, Math.max(0, (100 * at) / (max || 1)))}%`;
  const width = (from: number, to: number): string =>
    `${Math.max(0, (100 * (Math.min(to, max) - from)) / (max || 1))}%`;
  return (
    <span class="range-bar" aria-hidden="true">
      <span class="range-interval" style={{ left: place(low), width: width(low, high), background: colour }} />
      {reference !== undefined && <span class="range-reference" style={{ left: place(reference) }} />}
      <span class="range-mark" style={{ left: place(value), background: colour }} />
      {measured && (
        <>
          <span
            class="range-measured-interval"
            style={{ left: place(measured.low), width: width(measured.low, measured.high) }}
          />
          <span class="range-measured" style={{ left: place(measured.value) }} />
        </>
      )}
    </span>
  );
}
