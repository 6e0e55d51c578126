/**
 * What people type above a column in, a yes or no for each value out. Text: every word must occur. Numbers: `>1ms`, `<= 20us`,
 * `5..10`, `=3`, `unknown`; anything else is searched for in the text that the cell shows.
 */
import { parseDuration } from "../../format/duration";
import { formatUnit, type Unit } from "../../format/unit";

export type Predicate = (value: string | number | null) => boolean;

const ACCEPT_ALL: Predicate = () => true;

export function textFilter(query: string): Predicate {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return ACCEPT_ALL;
  return (value) => {
    const text = String(value ?? "unknown").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

/** `missing` is what the column shows for null. */
export function choiceFilter(query: string, missing = "unknown"): Predicate {
  return query === "" ? ACCEPT_ALL : (value) => (value ?? missing) === query;
}

export function numberFilter(query: string, unit: Unit): Predicate {
  const text = query.trim();
  if (text === "") return ACCEPT_ALL;
  const between = /^(.+?)\.\.(.+)$/.exec(text);
  const low = between && parse(between[1]!, unit);
  const high = between && parse(between[2]!, unit);
  if (typeof low === "number" && typeof high === "number") return known((value) => value >= low && value <= high);
  const comparison = /^(>=|<=|>|<|=)(.+)$/.exec(text);
  const bound = comparison && parse(comparison[2]!, unit);
  if (comparison && typeof bound === "number") {
    switch (comparison[1]) {
      case ">":
        return known((value) => value > bound);
      case ">=":
        return known((value) => value >= bound);
      case "<":
        return known((value) => value < bound);
      case "<=":
        return known((value) => value <= bound);
      default:
        return known((value) => value === bound);
    }
  }
  // Half a comparison is being typed: hide nothing yet.
  if (/^[<>=]/.test(text)) return ACCEPT_ALL;
  return (value) => formatUnit(typeof value === "number" ? value : null, unit).toLowerCase().includes(text.toLowerCase());
}

const known =
  (test: (value: number) => boolean): Predicate =>
  (value) =>
    typeof value === "number" && test(value);

function parse(text: string, unit: Unit): number | null {
  if (unit === "ns") return parseDuration(text);
  if (unit === "flops" || unit === "flops_per_second") return parseFlops(text);
  const match = /^\s*([\d.]+)\s*(%|×|x|[kmgt]i?b?|b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = unit === "bytes" ? " kmgt".indexOf((match[2] ?? " ").charAt(0).toLowerCase()) : 0;
  const value = Number(match[1]) * 1024 ** Math.max(0, power);
  return Number.isFinite(value) ? value : null;
}

/** "1.5T", "1.5 TFLOP" and "1.5 TFLOP/s" as 1.5e12. */
function parseFlops(text: string): number | null {
  const match = /^\s*([\d.]+)\s*([kmgtp])?(flops?(\/s)?)?\s*$/i.exec(text);
  if (!match) return null;
  const value = Number(match[1]) * 1000 ** Math.max(0, " kmgtp".indexOf((match[2] ?? " ").toLowerCase()));
  return Number.isFinite(value) ? value : null;
}
