/** The state of the sweep in, the query of its route out; lines and their colours. */
import type { Query } from "../../api/source";
import type { SweepCurve } from "../../api/types";
import { SERIES } from "../../format/colours";
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

/** The property that colours a line, and whether it is dashed: lines beyond the colours go through them again. */
export function lineStyle(index: number): { property: string; dashed: boolean } {
  return { property: SERIES[index % SERIES.length]!, dashed: Math.floor(index / SERIES.length) % 2 === 1 };
}

/** A value for each position, null where the line has no run. */
export function valuesOf(curve: SweepCurve, positions: number): (number | null)[] {
  const values = Array<number | null>(positions).fill(null);
  for (const mark of curve.marks) values[mark.position] = mark.value;
  return values;
}
