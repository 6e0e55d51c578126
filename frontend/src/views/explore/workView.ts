/** The views of a grouping of Explore: which is shown, and why one cannot be. Pure but for the address. */
import type { Page } from "../../state/pages";
import { viewParam, WORK_VIEWS, type WorkView } from "../../state/sharedParams";

export const WORK_VIEW_TITLES: Record<WorkView, string> = { table: "Table", icicle: "Icicle", roofline: "Roofline" };

/** Modules are a tree, which opens as one; the page of rates is the roofline of the ops. */
const FIRST: Partial<Record<Page, WorkView>> = { modules: "icicle", roofline: "roofline" };

/** The views of a page. Launches are no parts of one whole, and kernels have no FLOPs of their own. */
export const viewsOf = (page: Page): readonly WorkView[] =>
  page === "launches" ? ["table"] : page === "kernels" ? ["table", "icicle"] : WORK_VIEWS;

/** The chosen view, or the one that the page has at first. */
export const workView = (page: Page): WorkView =>
  page === "roofline" ? "roofline" : (viewParam.value ?? FIRST[page] ?? "table");

/** One sentence on why a page cannot show a view; null where it can. */
export function notPossible(page: Page, view: WorkView, hasGpu: boolean): string | null {
  if (view === "table") return null;
  if (page === "launches")
    return "Launches are several tables of waits and delays, not parts of one whole: there is no icicle and no roofline of them.";
  if (view === "icicle") return null;
  if (!hasGpu) return "There is no GPU in this recording, so there is no roof to compare with.";
  if (page === "kernels")
    return "FLOPs are counted by op, not by kernel, so kernels have no place on the roofline: the ops that launched them have one.";
  return null;
}
