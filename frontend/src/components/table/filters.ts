/**
 * What people type above a column in, a yes or no for each value out. Text: every word must occur. Numbers: `>1ms`, `<= 20us`,
 * `5..10`, `=3`, `unknown`; anything else is searched for in the text that the cell shows.
 */
import { parseDuration } from "../../format/duration";
import type { Unit } from "../../format/unit";
import type { Column } from "./columns";

export interface Filter {
  /** Looks at the text that the cell shows, which takes time to make for many values; else at the value alone. */
  byText: boolean;
  /** `text` in lower case, only filled where `byText`. */
  accepts: (value: string | number | null, text: string) => boolean;
}

const ACCEPT_ALL: Filter = { byText: false, accepts: () => true };
const byValue = (accepts: (value: string | number | null) => boolean): Filter => ({ byText: false, accepts });
const byText = (accepts: (text: string) => boolean): Filter => ({ byText: true, accepts: (_, text) => accepts(text) });

/** The filter that a query means in a column. */
export function filterOf<Row>(column: Column<Row>, query: string): Filter {
  if (column.filter === "choice") return choiceFilter(query, column.missing);
  return column.unit ? numberFilter(query, column.unit) : textFilter(query);
}

export function textFilter(query: string): Filter {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return ACCEPT_ALL;
  return byText((text) => words.every((word) => text.includes(word)));
}

/** `missing` is what the column shows for null. */
export function choiceFilter(query: string, missing = "unknown"): Filter {
  return query === "" ? ACCEPT_ALL : byValue((value) => String(value ?? missing) === query);
}

export function numberFilter(query: string, unit: Unit): Filter {
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
  const searched = text.toLowerCase();
  return byText((shown) => shown.includes(searched));
}

const known = (test: (value: number) => boolean): Filter =>
  byValue((value) => typeof value === "number" && test(value));

function parse(text: string, unit: Unit): number | null {
  if (unit === "ns") return parseDuration(text);
  if (unit === "bytes_per_second" || unit === "flops" || unit === "flops_per_second") return parseFlops(text);
  const match = /^\s*([\d.]+)\s*(%|×|x|[kmgt]i?b?|b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = unit === "bytes" ? " kmgt".indexOf((match[2] ?? " ").charAt(0).toLowerCase()) : 0;
  const value = Number(match[1]) * 1024 ** Math.max(0, power);
  return Number.isFinite(value) ? value : null;
}

/** "1.5T", "1.5 TFLOP" and "1.5 TFLOP/s" as 1.5e12. */
function parseFlops(text: string): number | null {
  const match = /^\s*([\d.]+)\s*([kmgtp])?(flops?|b)?(\/s)?\s*$/i.exec(text);
  if (!match) return null;
  const value = Number(match[1]) * 1000 ** Math.max(0, " kmgtp".indexOf((match[2] ?? " ").toLowerCase()));
  return Number.isFinite(value) ? value : null;
}
