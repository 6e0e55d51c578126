/** A value with the unit that the page data names, in; text out. */
import { exactNs, formatNs } from "./duration";
import {
  formatByteRate,
  formatBytes,
  formatCount,
  formatCountPerStep,
  formatExact,
  formatFlops,
  formatJoules,
  formatPercent,
  formatRate,
  formatRatio,
  formatWatts,
} from "./number";

export type Unit =
  | "ns"
  | "percent"
  | "count"
  | "count_per_step"
  | "bytes"
  | "bytes_per_second"
  | "ratio"
  | "per_second"
  | "flops"
  | "flops_per_second"
  | "joules"
  | "watts";

export function formatUnit(value: number | null, unit: Unit): string {
  switch (unit) {
    case "ns":
      return formatNs(value);
    case "percent":
      return formatPercent(value);
    case "bytes":
      return formatBytes(value);
    case "bytes_per_second":
      return formatByteRate(value);
    case "ratio":
      return formatRatio(value);
    case "per_second":
      return formatRate(value);
    case "flops":
      return formatFlops(value);
    case "flops_per_second":
      return value === null ? formatFlops(value) : `${formatFlops(value)}/s`;
    case "joules":
      return formatJoules(value);
    case "watts":
      return formatWatts(value);
    case "count":
      return formatCount(value);
    case "count_per_step":
      return formatCountPerStep(value);
  }
}

/** The unrounded value, for a title. */
export function exactUnit(value: number | null, unit: Unit): string {
  if (value === null) return "unknown";
  if (unit === "ns") return exactNs(value);
  const suffix = {
    percent: " %",
    bytes: " bytes",
    bytes_per_second: " bytes per second",
    ratio: "×",
    per_second: " per second",
    flops: " FLOP",
    flops_per_second: " FLOP/s",
    joules: " J",
    watts: " W",
    count: "",
    count_per_step: " per step",
  }[unit];
  return `${formatExact(value)}${suffix}`;
}
