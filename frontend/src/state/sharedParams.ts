/** The parameters that all pages share. What one page alone has is declared next to it, in its `params.ts`. */
import { choiceParam, pair, Param, textParam } from "./param";
import { PAGES } from "./pages";
import { readProfile, readRange, writeProfile, writeRange } from "./profile";
import { SHOWN, type Shown } from "../components/table/tasks";
import { parseSubject, subjectText, type Subject } from "./subject";

export const pageParam = choiceParam("page", PAGES);

export const profileParam = new Param({ read: (pairs) => readProfile(pairs), write: (choice) => writeProfile(choice) });

/** Null means all iterations. */
export const rangeParam = new Param(
  { read: (pairs) => readRange(pairs), write: (range) => writeRange(range) },
  { ofRun: true },
);

/** Whether sums over the selected iterations are shown per step. */
export const unitParam = choiceParam("unit", ["step", "total"]);

/** The columns of the tables, by what they are read for; null as each has them at first. */
export const columnsParam = new Param<Shown | null>({
  read: (pairs) => SHOWN.find((shown) => shown === pairs.get("columns")) ?? null,
  write: (shown) => pair("columns", shown),
});

/** How Explore shows the rows of a grouping; null as each does at first. */
export const WORK_VIEWS = ["table", "icicle", "roofline"] as const;
export type WorkView = (typeof WORK_VIEWS)[number];

export const viewParam = new Param<WorkView | null>({
  read: (pairs) => WORK_VIEWS.find((view) => view === pairs.get("view")) ?? null,
  write: (view) => pair("view", view),
});

/** The selected op, on the pages that show its details. */
export const opParam = textParam("op", { ofRun: true, namesOne: true });

/** The selected op type, by its name. */
export const opTypeParam = textParam("type", { ofRun: true, namesOne: true });

/** The op, op type, kernel or module whose rows the pages show; null shows all. */
export const filterParam = new Param<Subject | null>(
  {
    read: (pairs) => parseSubject(pairs.get("about") ?? null),
    write: (subject) => pair("about", subjectText(subject)),
  },
  { ofRun: true, filters: true },
);

/** The selected module, as a key. */
export const moduleParam = textParam("module", { namesOne: true });

export const kernelParam = textParam("kernel", { ofRun: true, namesOne: true });

export const SHARED_PARAMS = [
  pageParam,
  profileParam,
  rangeParam,
  unitParam,
  columnsParam,
  viewParam,
  opParam,
  opTypeParam,
  filterParam,
  moduleParam,
  kernelParam,
];
