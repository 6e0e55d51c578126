/** Nanoseconds in, text out; and the other way round for what people type into a filter. */
import { formatInteger, scaled } from "./number";

const UNITS = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
] as const;

/** 12345678 as "12.3 ms"; null as "unknown". */
export function formatNs(ns: number | null): string {
  return ns === null ? "unknown" : scaled(ns, UNITS);
}

/** The exact value, for a title: "12,345,678 ns". */
export function exactNs(ns: number | null): string {
  return ns === null ? "unknown" : `${formatInteger(ns)} ns`;
}

/** A difference with its sign: "+1.20 ms". */
export function formatNsDifference(ns: number | null): string {
  if (ns === null) return "unknown";
  return ns > 0 ? `+${formatNs(ns)}` : formatNs(ns).replace("-", "−");
}

/** "1.5 ms", "20us" or "300" (ns) as nanoseconds; null for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^\s*([\d.]+)\s*(ns|us|µs|μs|ms|s)?\s*$/i.exec(text);
  if (!match) return null;
  const factor = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9 }[(match[2] ?? "ns").toLowerCase()];
  const value = Number(match[1]);
  return factor === undefined || !Number.isFinite(value) ? null : value * factor;
}
