/** The words for the passes of a step, and DLProf's for them, which earlier versions showed: addresses have them, people type them. Pure. */
import type { Direction } from "../api/types";

const DLPROF: Readonly<Record<string, Direction>> = { fprop: "forward", bprop: "backward" };

/** Today's word for the one of an address; any other text as it is. */
export const passOf = (word: string): string => DLPROF[word] ?? word;

/** What a search finds a direction by: both words. */
export function directionWords(direction: Direction): string {
  return [direction, ...Object.keys(DLPROF).filter((word) => DLPROF[word] === direction)].join(" ");
}

/** A filter of a table of ops by its pass, whose column was called otherwise, too. */
export const passFilter =
  (column: string) =>
  (filter: { id: string; query: string }): { id: string; query: string } =>
    ["direction", "role", "pass"].includes(filter.id) ? { id: column, query: passOf(filter.query) } : filter;
