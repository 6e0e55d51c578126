/**
 * The pages: the one place where each is registered, with what the navigation and the search say of it, its component, the
 * parameters that it keeps in the address, and what it asks the server. Their order is that of `PAGES`.
 */
import type { ComponentType } from "preact";
import type { Route, Routes } from "../api/source";
import type { Queries, RangeQuery, RunEntry } from "../api/types";
import type { AnyParam } from "../state/param";
import { filterParam, SHARED_PARAMS } from "../state/sharedParams";
import { PAGES, type Page } from "../state/pages";
import type { Subject } from "../state/subject";
import { AdvicePage } from "../views/advice/AdvicePage";
import { DistributedPage } from "../views/distributed/DistributedPage";
import { DISTRIBUTED_PARAMS } from "../views/distributed/params";
import { ADVICE_PARAMS } from "../views/advice/params";
import { namesSetAside } from "../views/advice/setAside";
import { CompareView } from "../views/compare/CompareView";
import { COMPARE_PARAMS } from "../views/compare/params";
import { EnergyPage } from "../views/energy/EnergyPage";
import { energyParams } from "../views/energy/params";
import { KernelsPage } from "../views/kernels/KernelsPage";
import { LaunchesPage } from "../views/launches/LaunchesPage";
import { MemoryPage } from "../views/memory/MemoryPage";
import { deviceParam, MEMORY_PARAMS } from "../views/memory/params";
import { planParams } from "../views/plan/params";
import { PlanPage } from "../views/plan/PlanPage";
import { ModulesPage } from "../views/modules/ModulesPage";
import { OpTypesPage } from "../views/op_types/OpTypesPage";
import { opTypesTable } from "../views/op_types/params";
import { OpsPage } from "../views/ops/OpsPage";
import { OverviewPage } from "../views/overview/OverviewPage";
import { REPORT_PARAMS, reportParam } from "../views/reports/params";
import { FIRST_REPORT, ReportsPage } from "../views/reports/ReportsPage";
import { RooflinePage } from "../views/roofline/RooflinePage";
import { RUNS_PARAMS } from "../views/runs/params";
import { RunsPage } from "../views/runs/RunsPage";
import { TensorCoresPage } from "../views/tensor_cores/TensorCoresPage";
import { iterationParam, TIMELINE_PARAMS } from "../views/timeline/params";
import { TimelinePage } from "../views/timeline/TimelinePage";
import { TriedPage } from "../views/tried/TriedPage";
import { opsTable } from "../views/ops/params";
import { modulesTable } from "../views/modules/params";
import { kernelsTable } from "../views/kernels/params";
import { tensorCoresTable } from "../views/tensor_cores/params";
import { rooflineTable } from "../views/roofline/params";
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
  component: ComponentType<{ data: Routes[R]; entries: RunEntry[] }>;
}

/** A page that asks for what it needs by itself. */
interface OwnPage extends Described {
  query: null;
  component: ComponentType<{ entries: RunEntry[] }>;
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
    component: OpsPage,
  },
  op_types: {
    title: "Op types",
    question: "Which kinds of ops take the time?",
    key: "x",
    sums: true,
    params: opTypesTable.params,
    query: { route: "op_types" },
    component: OpTypesPage,
  },
  modules: {
    title: "Modules",
    question: "Which parts of the model take the time?",
    key: "m",
    sums: true,
    params: modulesTable.params,
    query: { route: "modules" },
    component: ModulesPage,
  },
  kernels: {
    title: "Kernels",
    question: "Which kernels take the time?",
    key: "k",
    sums: true,
    params: kernelsTable.params,
    query: { route: "kernels", own: ownKernels },
    component: KernelsPage,
  },
  launches: {
    title: "Launches",
    question: "Does the GPU wait for the CPU?",
    key: "l",
    sums: true,
    params: LAUNCHES_PARAMS,
    query: { route: "launches" },
    component: LaunchesPage,
  },
  timeline: {
    title: "Timeline",
    question: "What runs when, and where are the gaps?",
    key: "t",
    params: TIMELINE_PARAMS,
    query: { route: "timeline", own: () => ({ iteration: iterationParam.value }) },
    component: TimelinePage,
  },
  tensor_cores: {
    title: "Tensor Cores",
    question: "Which work could use Tensor Cores and does not?",
    key: "c",
    sums: true,
    params: tensorCoresTable.params,
    query: { route: "tensor_cores" },
    component: TensorCoresPage,
  },
  roofline: {
    title: "Roofline",
    question: "How near do ops come to what the GPU can do?",
    key: "f",
    sums: true,
    params: rooflineTable.params,
    query: { route: "roofline" },
    component: RooflinePage,
  },
  memory: {
    title: "Memory",
    question: "What takes the memory?",
    key: "y",
    params: MEMORY_PARAMS,
    query: { route: "memory", own: () => ({ device: deviceParam.value }) },
    component: MemoryPage,
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
    component: PlanPage,
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
    component: EnergyPage,
  },
  advice: {
    title: "Advice",
    question: "What should be changed, and what does it save?",
    key: "a",
    params: ADVICE_PARAMS,
    query: { route: "advice", own: () => ({ set_aside: namesSetAside().join(",") || null }) },
    component: AdvicePage,
  },
  tried: {
    title: "Tried",
    question: "What do remedies really gain here?",
    key: "v",
    query: { route: "tried" },
    component: TriedPage,
  },
  reports: {
    title: "Reports",
    question: "Tables to sort and save, DLProf's among them",
    key: "r",
    params: REPORT_PARAMS,
    query: { route: "report", own: () => ({ name: reportParam.value ?? FIRST_REPORT }) },
    component: ReportsPage,
  },
  compare: {
    title: "Compare",
    question: "Where do two runs differ?",
    key: "d",
    params: COMPARE_PARAMS,
    query: null,
    component: CompareView,
  },
  runs: {
    title: "Runs",
    question: "All runs in one table, by model, as a sweep",
    key: "u",
    params: RUNS_PARAMS,
    query: null,
    component: RunsPage,
  },
  distributed: {
    title: "Distributed",
    question: "Which rank delays the others, why, and what would repairs win?",
    key: "i",
    params: DISTRIBUTED_PARAMS,
    query: { route: "distributed" },
    component: DistributedPage,
  },
};

/** Every parameter of the address, in the order in which it names them. */
export const ALL_PARAMS: readonly AnyParam[] = [
  ...SHARED_PARAMS,
  ...PAGES.flatMap((page) => ROUTES[page].params ?? []),
];
