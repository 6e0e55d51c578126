/** The range of the page that is shown: the header lets it be changed, wherever the page is scrolled to. */
import { signal } from "@preact/signals";
import type { SelectedRange } from "../api/types";

/** Null while no page with a range of iterations is shown. */
export const shownRange = signal<SelectedRange | null>(null);
