/**
 * The pages: the one place where each is registered, with what the navigation and the search say of it, its component, the
 * parameters that it keeps in the address, and what it asks the server. Their order is that of `PAGES`.
 */
import type { JSX } from "preact";
import { lazyPage, loadPage } from "./lazyPage";
import type { Route, Routes } from "../api/source";
import type { Queries, RangeQuery, RunEntry } from "../api/types";
import type { AnyParam } from "../state/param";
import { filterParam, SHARED_PARAMS } from "../state/sharedParams";
import { PAGES, type Page } from "../state/pages";
import type { Subject } from "../state/subject";
import { DISTRIBUTED_PARAMS } from "../views/distributed/params";
import { ADVICE_PARAMS } from "../views/advice/params";
import { namesSetAside } from "../views/advice/setAside";
import { COMPARE_PARAMS } from "../views/compare/params";
import { energyParams } from "../views/energy/params";
import { deviceParam, MEMORY_PARAMS } from "../views/memory/params";
import { planParams } from "../views/plan/params";
import { opTypesTable } from "../views/op_types/params";
import { OverviewPage } from "../views/overview/OverviewPage";
import { FIRST_REPORT, REPORT_PARAMS, reportParam } from "../views/reports/params";
import { RUNS_PARAMS } from "../views/runs/params";
import { iterationParam, TIMELINE_PARAMS } from "../views/timeline/params";
import { opsTable } from "../views/ops/params";
import { modulesTable } from "../views/modules/params";
import { kernelsTable } from "../views/kernels/params";
import { tensorCoresTable } from "../views/tensor_cores/params";
import { rooflineTable } from "../views/roofline/params";
import { compiledTable } from "../views/compiled/params";
import { LAUNCHES_PARAMS } from "../views/launches/params";

/** The kernels of the op, op type or module that the pages are filtered to: calls and times are its own. */
function ownKernels(): { op: string | null; op_type: string | null; module: string | null } {
  const about = filterParam.value;
  const idOf = (kind: Subject["kind"]) => (about?.kind === kind ? about.id : null);
  return { op: idOf("op"), op_type: idOf("op_type"), module: idOf("module") };
}

/** All parameters that a route has in addition to run and range; null leaves one to the server. */
type OwnQuery<R extends Route> = Required<Omit<Queries[R], keyof RangeQuery>>;

/** What is requested for a page of one profile, in addition to run and range. */
export interface PageQuery<R extends Route> {
  route: R;
  /** Of the page's own parameters. */
  own?: () => OwnQuery<R>;
}

interface Described {
  title: string;
  /** What the page is for: shown and found by the search. */
  question: string;
  /** The key after g that leads to it. */
  key: string;
  /** It shows sums over the selected iterations, which the header switches between per step and total. */
  sums?: true;
  /** What it keeps in the address in addition to what all pages share. */
  params?: readonly AnyParam[];
}

/** A page of one profile: drawn once its answer is there. */
interface ProfilePage<R extends Route> extends Described {
  query: PageQuery<R>;
  component: (props: { data: Routes[R]; entries: RunEntry[] }) => JSX.Element;
}

/** A page that asks for what it needs by itself. */
interface OwnPage extends Described {
  query: null;
  component: (props: { entries: RunEntry[] }) => JSX.Element;
}

export type PageRoute = { [R in Route]: ProfilePage<R> }[Route] | OwnPage;

export const ROUTES: Record<Page, PageRoute> = {
  overview: {
    title: "Summary",
    question: "Where does the time go?",
    key: "o",
    sums: true,
    query: { route: "overview" },
    component: OverviewPage,
  },
  ops: {
    title: "Ops",
    question: "Which ops take the time?",
    key: "p",
    sums: true,
    params: opsTable.params,
    query: { route: "ops" },
    component: lazyPage(async () => (await import("../views/ops/OpsPage")).OpsPage),
  },
  op_types: {
    title: "Op types",
    question: "Which kinds of ops take the time?",
    key: "x",
    sums: true,
    params: opTypesTable.params,
    query: { route: "op_types" },
    component: lazyPage(async () => (await import("../views/op_types/OpTypesPage")).OpTypesPage),
  },
  modules: {
    title: "Modules",
    question: "Which parts of the model take the time?",
    key: "m",
    sums: true,
    params: modulesTable.params,
    query: { route: "modules" },
    component: lazyPage(async () => (await import("../views/modules/ModulesPage")).ModulesPage),
  },
  kernels: {
    title: "Kernels",
    question: "Which kernels take the time?",
    key: "k",
    sums: true,
    params: kernelsTable.params,
    query: { route: "kernels", own: ownKernels },
    component: lazyPage(async () => (await import("../views/kernels/KernelsPage")).KernelsPage),
  },
  launches: {
    title: "Launches",
    question: "Does the GPU wait for the CPU?",
    key: "l",
    sums: true,
    params: LAUNCHES_PARAMS,
    query: { route: "launches" },
    component: lazyPage(async () => (await import("../views/launches/LaunchesPage")).LaunchesPage),
  },
  timeline: {
    title: "Timeline",
    question: "What runs when, and where are the gaps?",
    key: "t",
    params: TIMELINE_PARAMS,
    query: { route: "timeline", own: () => ({ iteration: iterationParam.value }) },
    component: lazyPage(async () => (await import("../views/timeline/TimelinePage")).TimelinePage),
  },
  tensor_cores: {
    title: "Tensor Cores",
    question: "Which work could use Tensor Cores and does not?",
    key: "c",
    sums: true,
    params: tensorCoresTable.params,
    query: { route: "tensor_cores" },
    component: lazyPage(async () => (await import("../views/tensor_cores/TensorCoresPage")).TensorCoresPage),
  },
  roofline: {
    title: "Roofline",
    question: "How near do ops come to what the GPU can do?",
    key: "f",
    sums: true,
    params: rooflineTable.params,
    query: { route: "roofline" },
    component: lazyPage(async () => (await import("../views/roofline/RooflinePage")).RooflinePage),
  },
  compiled: {
    title: "Compiled code",
    question: "What do the kernels of torch.compile compute, and what does compilation cost?",
    key: "z",
    sums: true,
    params: compiledTable.params,
    query: { route: "compiled" },
    component: lazyPage(async () => (await import("../views/compiled/CompiledPage")).CompiledPage),
  },
  memory: {
    title: "Memory",
    question: "What takes the memory?",
    key: "y",
    params: MEMORY_PARAMS,
    query: { route: "memory", own: () => ({ device: deviceParam.value }) },
    component: lazyPage(async () => (await import("../views/memory/MemoryPage")).MemoryPage),
  },
  plan: {
    title: "What fits",
    question: "What else would fit into the memory?",
    key: "w",
    params: planParams.all,
    query: {
      route: "plan",
      own: () => planParams.query() as OwnQuery<"plan">,
    },
    component: lazyPage(async () => (await import("../views/plan/PlanPage")).PlanPage),
  },
  energy: {
    title: "Energy",
    question: "What energy does a step take, and where does it go?",
    key: "e",
    params: energyParams.all,
    query: {
      route: "energy",
      own: () => energyParams.query() as OwnQuery<"energy">,
    },
    component: lazyPage(async () => (await import("../views/energy/EnergyPage")).EnergyPage),
  },
  advice: {
    title: "All findings",
    question: "What should be changed, and what does it save?",
    key: "a",
    params: ADVICE_PARAMS,
    query: { route: "advice", own: () => ({ set_aside: namesSetAside().join(",") || null }) },
    component: lazyPage(async () => (await import("../views/advice/AdvicePage")).AdvicePage),
  },
  loader: {
    title: "DataLoader",
    question: "What limits the loading of batches, and how many workers does it need?",
    key: "b",
    query: { route: "loader" },
    component: lazyPage(async () => (await import("../views/loader/LoaderPage")).LoaderPage),
  },
  tried: {
    title: "Tried",
    question: "What do remedies really gain here?",
    key: "v",
    query: { route: "tried" },
    component: lazyPage(async () => (await import("../views/tried/TriedPage")).TriedPage),
  },
  reports: {
    title: "Reports",
    question: "Tables to sort and save, DLProf's among them",
    key: "r",
    params: REPORT_PARAMS,
    query: { route: "report", own: () => ({ name: reportParam.value ?? FIRST_REPORT }) },
    component: lazyPage(async () => (await import("../views/reports/ReportsPage")).ReportsPage),
  },
  compare: {
    title: "Compare",
    question: "Where do two runs differ?",
    key: "d",
    params: COMPARE_PARAMS,
    query: null,
    component: lazyPage(async () => (await import("../views/compare/CompareView")).CompareView),
  },
  runs: {
    title: "Runs",
    question: "All runs in one table, by model, as a sweep",
    key: "u",
    params: RUNS_PARAMS,
    query: null,
    component: lazyPage(async () => (await import("../views/runs/RunsPage")).RunsPage),
  },
  distributed: {
    title: "Distributed",
    question: "Which rank delays the others, why, and what would repairs win?",
    key: "i",
    params: DISTRIBUTED_PARAMS,
    query: { route: "distributed" },
    component: lazyPage(async () => (await import("../views/distributed/DistributedPage")).DistributedPage),
  },
};

/** Every parameter of the address, in the order in which it names them. */
export const ALL_PARAMS: readonly AnyParam[] = [
  ...SHARED_PARAMS,
  ...PAGES.flatMap((page) => ROUTES[page].params ?? []),
];

/** Loads what no page that was shown has needed so far: another page then opens at once. */
export const loadPages = (): Promise<unknown> => Promise.all(PAGES.map((page) => loadPage(ROUTES[page].component)));
