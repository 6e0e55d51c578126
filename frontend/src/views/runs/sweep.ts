/** The state of the sweep in, the query of its route out; how its lines are drawn. */
import type { Query } from "../../api/source";
import type { SweepCurve } from "../../api/types";
import { colourOf, SERIES } from "../../format/colours";
import { passOf } from "../../format/passes";

/** What a share is of before anything was chosen. */
export const DEFAULT_SHARE = "group:convolution";

/** `share` is "group:NAME", "op:TYPE" or "op:TYPE DIRECTION". */
export function sweepQuery(chosen: { over: string | null; measure: string | null; share: string | null }): Query {
  const query: Query = { over: chosen.over, measure: chosen.measure };
  if (chosen.measure !== "share") return query;
  const share = chosen.share ?? DEFAULT_SHARE;
  const name = share.slice(share.indexOf(":") + 1);
  if (!share.startsWith("op:")) return { ...query, kernel_group: name };
  const direction = /^(.+) (forward|backward|fprop|bprop)$/.exec(name);
  return direction ? { ...query, op: direction[1]!, direction: passOf(direction[2]!) } : { ...query, op: name };
}

export type Dash = "solid" | "dashed" | "dotted";

export interface LineStyle {
  /** A CSS value. */
  colour: string;
  dash: Dash;
  symbol: "circle" | "rect" | "triangle" | "diamond";
}

const DASHES: readonly Dash[] = ["solid", "dashed", "dotted"];
const SYMBOLS = ["circle", "rect", "triangle", "diamond"] as const;

/**
 * How each line is drawn: a precision has its colour, as on every page; lines that differ in something else take the series. Lines of
 * one colour differ in their dashes, then in their symbols.
 */
export function lineStyles(curves: readonly { precision_key: string }[]): LineStyle[] {
  const used = new Map<string, number>();
  let other = 0;
  return curves.map(({ precision_key }) => {
    const colour = precision_key ? colourOf(precision_key, 0, "ran_in") : `var(${SERIES[other++ % SERIES.length]!})`;
    const before = used.get(colour) ?? 0;
    used.set(colour, before + 1);
    return {
      colour,
      dash: DASHES[before % DASHES.length]!,
      symbol: SYMBOLS[Math.floor(before / DASHES.length) % SYMBOLS.length]!,
    };
  });
}

/** From here on the smallest value would be invisible on a linear axis. */
const WIDE = 20;

/** Whether values without an order, of models for example, are so different that they need a logarithmic axis. */
export function needsLogarithm(curves: readonly SweepCurve[], ordered: boolean): boolean {
  const values = curves.flatMap(({ marks }) => marks.map(({ value }) => value));
  const least = Math.min(...values);
  return !ordered && least > 0 && Math.max(...values) >= WIDE * least;
}
