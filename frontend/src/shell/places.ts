/**
 * The places of the header, and the pages that each shows as its views. The one place where they are listed; what a page is stands in
 * `routes.tsx`. Reports belong to no place: the menu "Export" leads to them.
 */
import type { Assignment } from "../state/param";
import type { Page } from "../state/pages";
import { RUNS_TABS, tabParam, type RunsTab } from "../views/runs/params";
import { ROUTES } from "./routes";

/** What a place can show. */
export interface View {
  id: string;
  title: string;
  page: Page;
  /** What is chosen on the page, where it is more than one view. */
  changes: readonly Assignment[];
  /** Whether it is the one that is shown, while its page is. */
  shown: () => boolean;
  /** It is the place's one table, its rows grouped by this. */
  groups?: true;
  /** It has no button of its own: another view leads to it. */
  within?: Page;
}

export interface Place {
  id: string;
  title: string;
  views: readonly View[];
  /** It is in the header only where the job of the run has several ranks, recorded or not. */
  ofRanks?: true;
  /** The view that it opens with, where that is not its first. */
  first?: Page;
}

const pageView = (page: Page): View => ({
  id: page.replaceAll("_", "-"),
  title: ROUTES[page].title,
  page,
  changes: [],
  shown: () => true,
});

const RUNS_TITLES: Record<RunsTab, string> = { all: "All runs", models: "By model", sweep: "Sweep" };

const runsView = (tab: RunsTab): View => ({
  id: `runs-${tab}`,
  title: RUNS_TITLES[tab],
  page: "runs",
  changes: [tabParam.to(tab)],
  shown: () => tabParam.value === tab,
});

export const PLACES: readonly Place[] = [
  {
    id: "summary",
    title: "Summary",
    views: [pageView("overview"), pageView("advice"), pageView("loader"), pageView("tried")],
  },
  {
    id: "explore",
    title: "Explore",
    first: "ops",
    views: [
      ...(["op_types", "modules", "ops", "kernels", "launches"] as const).map((page) => ({
        ...pageView(page),
        groups: true as const,
      })),
      pageView("tensor_cores"),
      { ...pageView("roofline"), within: "ops" },
      { ...pageView("compiled"), within: "ops" },
    ],
  },
  { id: "timeline", title: "Timeline", views: [pageView("timeline")] },
  { id: "memory", title: "Memory", views: [pageView("memory"), pageView("plan"), pageView("energy")] },
  {
    id: "compare",
    title: "Compare",
    views: [{ ...pageView("compare"), title: "Two runs" }, ...RUNS_TABS.map(runsView)],
  },
  { id: "distributed", title: "Distributed", ofRanks: true, views: [pageView("distributed")] },
];

/** Where a page is shown; null for one that a menu leads to. */
export const placeOf = (page: Page): Place | null =>
  PLACES.find(({ views }) => views.some((view) => view.page === page)) ?? null;
