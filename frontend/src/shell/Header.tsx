/** The bar that stays at the top: places, run, search and menus; below them the views of the place and the iterations. */
import { useEffect, useRef } from "preact/hooks";
import type { RunIndex } from "../api/types";
import { useFile } from "../api/useResource";
import { ProfileKeyNode } from "../features/KeyNodePicker";
import { ProfilePicker } from "../features/pickers/ProfilePicker";
import { Switch } from "../components/Switch";
import { RangePicker } from "../features/RangePicker";
import { openPage, showProfile } from "../state/navigate";
import { resolveChoice } from "../state/profileChoice";
import type { Page } from "../state/pages";
import { assign, useParam } from "../state/param";
import { pageParam, profileParam, unitParam, viewParam } from "../state/sharedParams";
import { viewsOf, WORK_VIEW_TITLES, workView } from "../views/explore/workView";
import { shownRange, stepsOf } from "../state/shownRange";
import { ThemeButton } from "./AboutFile";
import { keyNames } from "./keys/KeyHelp";
import { PLACES, placeOf, type Place, type View } from "./places";
import { ROUTES } from "./routes";
import { ExportMenu } from "./ExportMenu";

interface HeaderProps {
  index: RunIndex | null;
  busy: boolean;
  onRefresh: () => void;
  /** Null where there is nothing to search. */
  onSearch: (() => void) | null;
  onKeys: () => void;
}

/** The view of each place that was shown last: a place opens as it was left. */
const left = new Map<string, View>();

const open = (view: View): void => openPage(view.page, ...view.changes);
const isShown = (view: View): boolean => view.page === pageParam.value && view.shown();
/** Its button is marked for the views within it, too. */
const isCurrent = (view: View, views: readonly View[]): boolean =>
  isShown(view) || views.some((inner) => inner.within === view.page && isShown(inner));

export function Header({ index, busy, onRefresh, onSearch, onKeys }: HeaderProps) {
  const file = useFile();
  const page = useParam(pageParam);
  const place = placeOf(page);
  const shown = place?.views.find(isShown);
  if (place && shown) left.set(place.id, shown);
  const chosen = resolveChoice(index?.runs ?? [], profileParam.value);
  const severalRanks = Math.max(chosen?.ranks.length ?? 0, chosen?.entry?.world_size ?? 0) > 1;
  const bar = useRef<HTMLElement>(null);
  useHeight(bar);
  return (
    <header class="top" ref={bar}>
      <div class="top-row">
        <nav aria-label="Places" class="places">
          {PLACES.filter((one) => one === place || !one.ofRanks || severalRanks).map((one, number) => (
            <button
              class="top-tab"
              type="button"
              key={one.id}
              data-testid={`place-${one.id}`}
              aria-current={one === place ? "page" : undefined}
              title={`Key: ${number + 1}`}
              onClick={() => openPlace(one)}
            >
              {one.title}
            </button>
          ))}
        </nav>
        <div class="top-right">
          {index && page !== "compare" && page !== "runs" && (
            <ProfilePicker
              entries={index.runs}
              choice={profileParam.value}
              label="Run"
              onChange={(profile) => showProfile(profile)}
            />
          )}
          {onSearch && <SearchButton onSearch={onSearch} />}
          {index && <ExportMenu index={index} />}
          {file ? (
            <ThemeButton />
          ) : (
            <button
              type="button"
              class="button"
              data-testid="refresh"
              disabled={busy}
              onClick={onRefresh}
              title="Look for new runs"
            >
              {busy ? "Refreshing" : "Refresh"}
            </button>
          )}
          <button
            type="button"
            class="button"
            data-testid="keys-open"
            aria-label="Keys of this page"
            aria-keyshortcuts="?"
            title="Keys: ?"
            onClick={onKeys}
          >
            ?
          </button>
        </div>
      </div>
      <SecondRow place={place} page={page} />
    </header>
  );
}

/** A place as it was left, or at its first view. */
export function openPlace(place: Place): void {
  open(left.get(place.id) ?? place.views.find(({ page }) => page === place.first) ?? place.views[0]!);
}

const UNITS = [
  ["step", "Per step"],
  ["total", "Total"],
] as const;

/** The views of the place, and the iterations that the page is about. */
function SecondRow({ place, page }: { place: Place | null; page: Page }) {
  const range = shownRange.value;
  const views = place && place.views.length > 1 ? place.views : [];
  const grouped = views.filter(({ groups }) => groups);
  const hasRange = range !== null && range.found_by !== "none";
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page moves the mark that is looked for.
  useEffect(() => {
    // Where the views are a line to swipe, the one that is shown stands in its middle.
    const current = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && current)
      nav.current.scrollLeft = current.offsetLeft + (current.offsetWidth - nav.current.clientWidth) / 2;
  }, [page]);
  if (views.length === 0 && !hasRange) return null;
  return (
    <div class="top-row top-views">
      {views.length > 0 && (
        <nav aria-label={`Views of ${place!.title}`} ref={nav}>
          {grouped.length > 0 && (
            <span class="view-groups" role="group" aria-label="Group by">
              <span class="muted">Group by</span>
              {grouped.map((view) => (
                <ViewButton key={view.id} view={view} current={isCurrent(view, views)} />
              ))}
            </span>
          )}
          {grouped.some((view) => isCurrent(view, views)) && <WorkViews page={page} />}
          {views
            .filter(({ groups, within }) => !groups && !within)
            .map((view) => (
              <ViewButton key={view.id} view={view} current={isShown(view)} />
            ))}
        </nav>
      )}
      {hasRange && (
        <span class="page-iterations">
          {ROUTES[page].sums && stepsOf(range) > 1 && (
            <Switch
              label="Sums over the iterations"
              testId="unit"
              value={unitParam.value}
              choices={UNITS}
              onChange={(unit) => assign(unitParam.to(unit))}
            />
          )}
          <RangePicker range={range} />
          <ProfileKeyNode range={range} />
        </span>
      )}
    </div>
  );
}

/** Table, icicle or roofline of what the place's one table shows. */
function WorkViews({ page }: { page: Page }) {
  const views = viewsOf(page);
  if (views.length < 2) return null;
  return (
    <span class="work-views">
      <span class="muted">View</span>
      <Switch
        label="View"
        testId="work-view"
        value={workView(page)}
        choices={views.map((view) => [view, WORK_VIEW_TITLES[view]] as const)}
        onChange={(view) => openPage(page === "roofline" ? "ops" : page, viewParam.to(view))}
      />
    </span>
  );
}

function ViewButton({ view, current }: { view: View; current: boolean }) {
  return (
    <button
      class="top-tab"
      type="button"
      data-testid={`nav-${view.id}`}
      aria-current={current ? "page" : undefined}
      title={view.page === "runs" ? undefined : `Keys: g, then ${ROUTES[view.page].key}`}
      onClick={() => open(view)}
    >
      {view.title}
    </button>
  );
}

function SearchButton({ onSearch }: { onSearch: () => void }) {
  return (
    <button
      type="button"
      class="button search-open"
      data-testid="search-open"
      aria-label="Search"
      aria-keyshortcuts="/ Control+K"
      title={`Search: / or ${keyNames("mod+k")[0]}`}
      onClick={onSearch}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path
          d="M11 11l4 4M12.5 7A5.5 5.5 0 1 1 1.5 7a5.5 5.5 0 0 1 11 0z"
          fill="none"
          stroke="currentColor"
          stroke-width="1.6"
        />
      </svg>
      <kbd>/</kbd>
    </button>
  );
}

/** Keeps the height of what stays at the top in `--top`, for what sticks below it and what is scrolled to. On a phone that is the first row. */
function useHeight(bar: { current: HTMLElement | null }): void {
  useEffect(() => {
    const element = bar.current;
    const first = element?.querySelector<HTMLElement>(".top-row");
    if (!element || !first || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() =>
      document.documentElement.style.setProperty("--top", `${element.offsetHeight || first.offsetHeight}px`),
    );
    observer.observe(element);
    observer.observe(first);
    return () => observer.disconnect();
  }, [bar]);
}
