/** The page that the address names: asks for its data and hands it over. */
import type { ComponentChildren, ComponentType } from "preact";
import { profileQuery } from "../api/queries";
import type { Query, Route } from "../api/source";
import type { RunEntry, SelectedRange } from "../api/types";
import { useResource, type Resource } from "../api/useResource";
import { isWholeRoute, useWhole, type WholeResource, type WholeRoute } from "../api/useWhole";
import { SubjectContext } from "../components/export/Drawing";
import { GrowingContext } from "../components/table/GrowingContext";
import { BackToSteps } from "../features/KeyNodePicker";
import { SumsContext } from "../components/sums";
import { ResourceView } from "../features/ResourceView";
import { stepsOf } from "../state/shownRange";
import { pageParam, profileParam, rangeParam, unitParam } from "../state/sharedParams";
import type { IterationRange } from "../state/profile";
import { loadPage } from "./lazyPage";
import { ROUTES } from "./routes";

export function PageView({ entries }: { entries: RunEntry[] }) {
  const page = pageParam.value;
  const { query, component } = ROUTES[page];
  // Next to its data: whatever fails shows as the page is drawn.
  loadPage(component).catch(() => undefined);
  return (
    <SubjectContext.Provider value={page === "runs" ? "" : subjectOf(profileParam.value.run, rangeParam.value)}>
      {query === null ? (
        <OwnPage component={component as ComponentType<OwnPageProps>} entries={entries} />
      ) : (
        // By page: another one starts with a state of its own.
        <ProfilePage
          key={page}
          route={query.route}
          own={query.own?.() ?? {}}
          component={component as ComponentType<ProfilePageProps>}
          entries={entries}
        />
      )}
    </SubjectContext.Provider>
  );
}

interface OwnPageProps {
  entries: RunEntry[];
}

interface ProfilePageProps extends OwnPageProps {
  data: unknown;
}

const OwnPage = ({ component: Drawn, entries }: OwnPageProps & { component: ComponentType<OwnPageProps> }) => (
  <Drawn entries={entries} />
);

interface AskedProps<R extends Route> {
  route: R;
  own: Query;
  component: ComponentType<ProfilePageProps>;
  entries: RunEntry[];
}

function ProfilePage({ route, ...rest }: AskedProps<Route>) {
  return isWholeRoute(route) ? <WholePage route={route} {...rest} /> : <PlainPage route={route} {...rest} />;
}

function PlainPage({ route, own, component: Drawn, entries }: AskedProps<Route>) {
  const { query, key } = selection(own);
  const resource = useResource(route, query, key);
  return <ProfileResource resource={resource}>{(data) => <Drawn data={data} entries={entries} />}</ProfileResource>;
}

/** Of a table whose rows come in several answers. */
function WholePage({ route, own, component: Drawn, entries }: AskedProps<WholeRoute>) {
  const { query, key } = selection(own);
  const resource = useWhole(route, query, key);
  return (
    <GrowingContext.Provider value={resource.growing}>
      <ProfileResource resource={resource}>{(data) => <Drawn data={data} entries={entries} />}</ProfileResource>
    </GrowingContext.Provider>
  );
}

/**
 * What every page of one profile asks with, and the key under which old data may stay while new data loads: that of another cycle or
 * rank of the run does, marked as busy, so that going through them does not flash.
 */
function selection(own: Query): { query: Query; key: string } {
  const profile = profileParam.value;
  return { query: { ...profileQuery(profile, rangeParam.value), ...own }, key: String(profile.run) };
}

/** Another run may lack the key node that the address names. */
function ProfileResource<T>(props: {
  resource: Resource<T> | WholeResource<T>;
  children: (data: T) => ComponentChildren;
}) {
  const { children, ...rest } = props;
  return (
    <ResourceView {...rest} remedy={<BackToSteps />}>
      {(data) => <SumsContext.Provider value={iterationsOf(data)}>{children(data)}</SumsContext.Provider>}
    </ResourceView>
  );
}

/** By how many iterations the sums of a page are divided. */
function iterationsOf(data: unknown): number {
  const { range } = data as { range?: SelectedRange };
  return range && unitParam.value === "step" ? stepsOf(range) : 1;
}

function subjectOf(run: string | null, range: IterationRange | null): string {
  if (run === null || range === null) return run ?? "";
  const { first, last } = range;
  return `${run}, ${first === last ? `iteration ${first + 1} of the recording` : `iterations ${first + 1} to ${last + 1} of the recording`}`;
}
