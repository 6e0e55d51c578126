/**
 * What the user looks at, and its spelling as key=value pairs. Everything that survives a reload or travels in a link is
 * here, nothing else is. Pure: `hash.ts` does the reading and writing.
 */
import { isPage, type Page } from "./pages";
import { parseSubject, subjectText, type Subject } from "./subject";

/** Which profile: null means "the default" (first run, newest session, lowest rank, last cycle). */
export interface ProfileChoice {
  run: string | null;
  session: string | null;
  rank: number | null;
  cycle: number | null;
  /** The op that delimits its iterations; null means the steps that were recorded. */
  keyNode: string | null;
}

/** Indices of iterations, both inclusive. */
export interface IterationRange {
  first: number;
  last: number;
}

/** One side of a comparison. */
export interface CompareChoice extends ProfileChoice {
  range: IterationRange | null;
}

/** The parts of the Runs page. */
export const RUNS_TABS = ["all", "models", "sweep"] as const;

export type RunsTab = (typeof RUNS_TABS)[number];

export const SEVERITIES = ["high", "medium", "low"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** Findings that the user marked as done: rules, and the run whose findings they are; null means the run that is shown. */
export interface Resolved {
  run: string | null;
  rules: readonly string[];
}

export interface ViewState {
  page: Page;
  profile: ProfileChoice;
  /** Null means all iterations. */
  range: IterationRange | null;
  op: string | null;
  /** The op, kernel or module whose rows the pages show; null shows all. */
  about: Subject | null;
  /** The module selected on the Modules page, as a key. */
  module: string | null;
  kernel: string | null;
  /** Index of the iteration that the Timeline page shows; null means the median one of the range. */
  iteration: number | null;
  /** The event selected on the Timeline page: a letter for what it is, and its row. */
  event: string | null;
  finding: string | null;
  /** Which findings the Advice page shows; none named means all. */
  severities: readonly Severity[];
  /** Rules whose findings the user does not want to see, in any run. */
  dismissed: readonly string[];
  resolved: Resolved;
  /** Which forecast the Advice page shows; null means the one that gains most. */
  precision: string | null;
  /** Whose memory is shown: "cpu" or the number of a GPU; null means the first GPU. */
  device: string | null;
  /** Which report the Reports page shows; null means the first. */
  report: string | null;
  a: CompareChoice;
  b: CompareChoice;
  /** What the Compare page drills into: a bar of the waterfall, a module ("." for what lies in none), an op. */
  bucket: string | null;
  pairModule: string | null;
  pair: string | null;
  runsTab: RunsTab;
  /** What all runs are held against; null means each model's own base. */
  base: string | null;
  /** The fact that a sweep goes over and what it draws; null leaves both to the server. */
  over: string | null;
  measure: string | null;
  /** What a share is of: "group:NAME", "op:TYPE" or "op:TYPE DIRECTION". */
  share: string | null;
}

export const NO_PROFILE: ProfileChoice = { run: null, session: null, rank: null, cycle: null, keyNode: null };

/** What goes when another run is picked: it speaks of this one. */
export const ANOTHER_RUN = { range: null, op: null, kernel: null, iteration: null, event: null, finding: null, device: null, about: null } as const;

export const INITIAL_STATE: ViewState = {
  page: "overview",
  profile: NO_PROFILE,
  range: null,
  op: null,
  about: null,
  module: null,
  kernel: null,
  iteration: null,
  event: null,
  finding: null,
  severities: [],
  dismissed: [],
  resolved: { run: null, rules: [] },
  precision: null,
  device: null,
  report: null,
  a: { ...NO_PROFILE, range: null },
  b: { ...NO_PROFILE, range: null },
  bucket: null,
  pairModule: null,
  pair: null,
  runsTab: "all",
  base: null,
  over: null,
  measure: null,
  share: null,
};

/** Names with commas between; null for none. */
const list = (names: readonly string[]): string | null => names.join(",") || null;

/** Far more than there are rules: an address that someone made up cannot make the page slow. */
const MOST_NAMES = 200;

const names = (text: string | undefined): string[] => [...new Set((text ?? "").split(",").filter((name) => /^[\w-]+$/.test(name)))].slice(0, MOST_NAMES);

/** The state as pairs, defaults left out. */
export function stateToPairs(state: ViewState): [key: string, value: string][] {
  const pairs: [string, string][] = [];
  const put = (key: string, value: string | number | null): void => {
    if (value !== null) pairs.push([key, String(value)]);
  };
  const putProfile = (prefix: string, choice: ProfileChoice, range: IterationRange | null): void => {
    put(`${prefix}run`, choice.run);
    put(`${prefix}session`, choice.session);
    put(`${prefix}rank`, choice.rank);
    put(`${prefix}cycle`, choice.cycle);
    put(`${prefix}keyNode`, choice.keyNode);
    put(`${prefix}first`, range?.first ?? null);
    put(`${prefix}last`, range?.last ?? null);
  };
  if (state.page !== INITIAL_STATE.page) put("page", state.page);
  putProfile("", state.profile, state.range);
  put("op", state.op);
  put("about", subjectText(state.about));
  put("module", state.module);
  put("kernel", state.kernel);
  put("iteration", state.iteration);
  put("event", state.event);
  put("finding", state.finding);
  put("severity", list(state.severities));
  put("dismissed", list(state.dismissed));
  put("resolved", list(state.resolved.rules));
  if (state.resolved.rules.length > 0 && state.resolved.run !== state.profile.run) put("resolvedRun", state.resolved.run);
  put("precision", state.precision);
  put("device", state.device);
  put("report", state.report);
  putProfile("a.", state.a, state.a.range);
  putProfile("b.", state.b, state.b.range);
  put("bucket", state.bucket);
  put("pairModule", state.pairModule);
  put("pair", state.pair);
  if (state.runsTab !== INITIAL_STATE.runsTab) put("runs", state.runsTab);
  put("base", state.base);
  put("over", state.over);
  put("measure", state.measure);
  put("share", state.share);
  return pairs;
}

/** The state that pairs spell; what is missing or makes no sense becomes the default. */
export function pairsToState(pairs: Iterable<readonly [string, string]>): ViewState {
  const map = new Map(pairs);
  const text = (key: string): string | null => map.get(key) || null;
  const index = (key: string): number | null => {
    const value = map.get(key);
    return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : null;
  };
  const profile = (prefix: string): ProfileChoice => ({
    run: text(`${prefix}run`),
    session: text(`${prefix}session`),
    rank: index(`${prefix}rank`),
    cycle: index(`${prefix}cycle`),
    keyNode: text(`${prefix}keyNode`),
  });
  const range = (prefix: string): IterationRange | null => {
    const first = index(`${prefix}first`);
    const last = index(`${prefix}last`);
    return first === null || last === null || last < first ? null : { first, last };
  };
  const resolved = (): Resolved => {
    const rules = names(map.get("resolved"));
    return { run: rules.length > 0 ? (text("resolvedRun") ?? text("run")) : null, rules };
  };
  const page = map.get("page") ?? "";
  return {
    page: isPage(page) ? page : INITIAL_STATE.page,
    profile: profile(""),
    range: range(""),
    op: text("op"),
    about: parseSubject(text("about")),
    module: text("module"),
    kernel: text("kernel"),
    iteration: index("iteration"),
    event: /^[cgip]\d{1,15}$/.test(map.get("event") ?? "") ? text("event") : null,
    finding: text("finding"),
    severities: SEVERITIES.filter((severity) => names(map.get("severity")).includes(severity)),
    dismissed: names(map.get("dismissed")),
    resolved: resolved(),
    precision: text("precision"),
    device: text("device"),
    report: text("report"),
    a: { ...profile("a."), range: range("a.") },
    b: { ...profile("b."), range: range("b.") },
    bucket: text("bucket"),
    pairModule: text("pairModule"),
    pair: text("pair"),
    runsTab: RUNS_TABS.find((tab) => tab === map.get("runs")) ?? INITIAL_STATE.runsTab,
    base: text("base"),
    over: text("over"),
    measure: text("measure"),
    share: text("share"),
  };
}
