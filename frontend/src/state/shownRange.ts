/** The range of the page that is shown: the header lets it be changed, wherever the page is scrolled to. */
import { signal } from "@preact/signals";
import type { SelectedRange } from "../api/types";

/** How many steps the range has; 1 where none was found, and the recording is looked at as a whole. */
export const stepsOf = ({ first, last, found_by }: SelectedRange): number =>
  found_by === "none" ? 1 : last - first + 1;

/** Null while no page with a range of iterations is shown. */
export const shownRange = signal<SelectedRange | null>(null);
