/** Numbers in, short text out: three significant digits, a unit where there is one. Null never becomes 0. */

const EM_UNKNOWN = "unknown";

// Made once: toLocaleString with options makes one for each number, which a table of a thousand cells feels.
const INTEGERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const ONE_DECIMAL = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const EXACT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/** 1234567 as "1,234,567". */
export function formatInteger(value: number): string {
  return INTEGERS.format(Math.round(value));
}

/** From here on decimals are the noise of the division that made a rate: 66,999,999,999,999.99. */
const WHOLE = 1e6;

/** A number for a file: as it is, from a million on without decimals. */
export const writtenNumber = (value: number): number => (Math.abs(value) >= WHOLE ? Math.round(value) : value);

/** With up to six decimals, from a million on with none, for a title. */
export function formatExact(value: number): string {
  return EXACT.format(writtenNumber(value));
}

/** "2.59× to 2.61×"; where both ends read the same one number with half the width, "146 ms ± 200 µs". */
export function formatInterval(low: number, high: number, format: (value: number) => string): string {
  const [from, to] = [format(low), format(high)];
  if (from !== to) return `${from} to ${to}`;
  return low === high ? from : `${from} ± ${format((high - low) / 2)}`;
}

/** Three significant digits, never in exponent form: 1.23, 12.3, 123, 1,230. */
export function threeDigits(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  // Above 1,000 the integer digits are all kept: cutting them would not shorten the text.
  if (magnitude >= 999.5) return formatInteger(value);
  const rounded = Number(magnitude.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(rounded)));
  return (value < 0 ? "-" : "") + rounded.toFixed(Math.min(decimals, 8));
}

/** Scales `value` to the largest unit that leaves at least 1 before the point. `units` is ascending. */
export function scaled(value: number, units: readonly (readonly [factor: number, suffix: string])[]): string {
  let [factor, suffix] = units[0]!;
  for (const [nextFactor, nextSuffix] of units) {
    // 999.7 us would print as 1000 us: it belongs to the next unit.
    if (Math.abs(value) >= nextFactor * 0.9995) [factor, suffix] = [nextFactor, nextSuffix];
  }
  return `${threeDigits(value / factor)} ${suffix}`;
}

/** A count: integers in full, means with three digits. */
export function formatCount(value: number | null): string {
  if (value === null) return EM_UNKNOWN;
  return Number.isInteger(value) ? formatInteger(value) : threeDigits(value);
}

/** Calls of an op in a step: an integer where every step has as many, else one decimal. */
export function formatCountPerStep(value: number | null): string {
  if (value === null) return EM_UNKNOWN;
  if (value > 0 && value < 0.05) return "<0.1";
  return Number.isInteger(value) ? formatInteger(value) : ONE_DECIMAL.format(value);
}

/** A percentage from 0 to 100. Nothing is rounded to the ends: 99.97 is not printed as 100 and 0.001 not as 0. */
export function formatPercent(value: number | null): string {
  if (value === null) return EM_UNKNOWN;
  if (value > 0 && value < 0.01) return "<0.01 %";
  if (value >= 99.95 && value < 100) return ">99.9 %";
  return `${threeDigits(value)} %`;
}

/** A ratio such as a speedup: "2.31×". */
export function formatRatio(value: number | null): string {
  return value === null ? EM_UNKNOWN : `${threeDigits(value)}×`;
}

const JOULES = [
  [1e-6, "µJ"],
  [1e-3, "mJ"],
  [1, "J"],
  [1e3, "kJ"],
] as const;

/** An energy: "18.7 J", "640 mJ". */
export function formatJoules(value: number | null): string {
  if (value === null) return EM_UNKNOWN;
  return value === 0 ? "0 J" : scaled(value, JOULES);
}

/** A power: "451 W". */
export function formatWatts(value: number | null): string {
  return value === null ? EM_UNKNOWN : `${threeDigits(value)} W`;
}

/** A rate: "1,234 /s". */
export function formatRate(value: number | null): string {
  return value === null ? EM_UNKNOWN : `${threeDigits(value)} /s`;
}

const FLOP_UNITS = [
  [1, "FLOP"],
  [1e3, "kFLOP"],
  [1e6, "MFLOP"],
  [1e9, "GFLOP"],
  [1e12, "TFLOP"],
  [1e15, "PFLOP"],
] as const;

/** Floating-point operations in decimal units: "1.06 TFLOP". */
export function formatFlops(value: number | null): string {
  return value === null ? EM_UNKNOWN : scaled(value, FLOP_UNITS);
}

/** A bandwidth in decimal units, as makers give it: "4.80 TB/s". */
export function formatByteRate(value: number | null): string {
  if (value === null) return EM_UNKNOWN;
  return scaled(value, [
    [1e9, "GB/s"],
    [1e12, "TB/s"],
  ]);
}

const BYTE_UNITS = [
  [1, "B"],
  [1024, "KiB"],
  [1024 ** 2, "MiB"],
  [1024 ** 3, "GiB"],
  [1024 ** 4, "TiB"],
] as const;

/** Bytes in binary units: "1.50 GiB". */
export function formatBytes(value: number | null): string {
  return value === null ? EM_UNKNOWN : scaled(value, BYTE_UNITS);
}
