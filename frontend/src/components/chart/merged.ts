/** Bars that are means of several iterations in a row: how they are distinguished, and what they show in addition to the mean. */
import { number } from "../export/columns";
import type { Column } from "../table/columns";

export interface Merged {
  index: number;
  last: number;
  last_number: number;
  shortest_ns: number;
  longest_ns: number;
}

export const isMerged = (bars: readonly Merged[]): boolean => bars.some((bar) => bar.last > bar.index);

/** The columns of a table of the bars in addition to the means. */
export const MERGED: Column<Merged>[] = [
  number(
    "Last iteration",
    "count",
    (bar) => bar.last_number,
    "The times are means from the first to this iteration, both included.",
  ),
  number("Shortest", "ns", (bar) => bar.shortest_ns, "The shortest of these iterations."),
  number("Longest", "ns", (bar) => bar.longest_ns, "The longest of these iterations."),
];
