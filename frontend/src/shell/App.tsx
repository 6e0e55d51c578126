/** The whole page: reads the runs, provides state, theme, connection and keys, and draws header and page. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Client, type Source } from "../api/client";
import type { RunIndex } from "../api/types";
import { ConnectionContext } from "../api/useResource";
import { ErrorBoundary, ErrorMessage } from "../components/Message";
import { PageSkeleton } from "../components/Skeleton";
import { TooltipLayer } from "../components/TooltipLayer";
import { resolveChoice } from "../state/profileChoice";
import { createStore, useView, ViewContext } from "../state/store";
import { followTheme, type Theme } from "../state/theme";
import { ThemeContext } from "../state/ThemeContext";
import { AboutFile } from "./AboutFile";
import { Announcer } from "./Announcer";
import { EmptyState } from "./EmptyState";
import { Header } from "./Header";
import { KeyHelp } from "./keys/KeyHelp";
import { listenForKeys } from "./keys/listen";
import { PageKeys } from "./keys/PageKeys";
import { Shortcuts } from "./keys/shortcuts";
import { ShortcutContext } from "./keys/useShortcut";
import { follows, held, newsOf } from "./live/news";
import { NewsNotice, type Notice } from "./live/NewsNotice";
import { useRuns, type Runs } from "./live/useRuns";
import { PageView } from "./PageView";
import { SearchDialog } from "./search/SearchDialog";

/** `base` is where answers come from: the folder of the routes, or a file that holds them. */
export function App({ base }: { base: Source | URL }) {
  const client = useMemo(() => new Client(base), [base instanceof URL ? base.href : base]);
  const [generation, setGeneration] = useState(0);
  const store = useMemo(createStore, []);
  const [state, setState] = useState(store.get());
  const [theme, setTheme] = useState<Theme>("light");
  const shortcuts = useMemo(() => new Shortcuts(), []);

  useEffect(() => {
    const unsubscribe = store.subscribe(setState);
    return () => {
      unsubscribe();
      store.dispose();
    };
  }, [store]);
  useEffect(
    () =>
      followTheme((next) => {
        document.documentElement.dataset["theme"] = next;
        setTheme(next);
      }),
    [],
  );
  useEffect(() => listenForKeys(shortcuts), [shortcuts]);

  const [notice, setNotice] = useState<Notice | null>(null);
  const onNews = (before: RunIndex, after: RunIndex): void => {
    const { profile, range, a, b } = store.get();
    const news = newsOf(before.runs, after.runs, profile);
    if (!news) return;
    client.forget(news.changed);
    setGeneration((count) => count + 1);
    const shown = follows(profile, range !== null);
    store.set({ profile: held(before.runs, profile, range !== null), a: held(before.runs, a, a.range !== null), b: held(before.runs, b, b.range !== null) });
    const said = noticeOf(news, shown, range !== null);
    // What was said and not closed is still so.
    if (said) setNotice((open) => ({ latest: said.latest ?? open?.latest ?? null, runs: [...(open?.runs ?? []), ...said.runs] }));
  };
  const runs = useRuns(client, onNews);
  const refresh = (): void => {
    client.clear();
    setGeneration((count) => count + 1);
    void runs.check();
  };
  const connection = useMemo(() => ({ client, generation }), [client, generation]);
  const view = useMemo(() => ({ state, set: store.set }), [state, store]);
  return (
    <ThemeContext.Provider value={theme}>
      <ConnectionContext.Provider value={connection}>
        <ViewContext.Provider value={view}>
          <ShortcutContext.Provider value={shortcuts}>
            <Content index={runs} onRefresh={refresh} />
            {notice && <NewsNotice notice={notice} onClose={() => setNotice(null)} />}
            <TooltipLayer />
            <Announcer />
          </ShortcutContext.Provider>
        </ViewContext.Provider>
      </ConnectionContext.Provider>
    </ThemeContext.Provider>
  );
}

/** Header and page, once the runs are known. */
function Content({ index, onRefresh }: { index: Runs; onRefresh: () => void }) {
  const { state, set } = useView();
  const [sheet, setSheet] = useState<"search" | "keys" | null>(null);
  const entries = index.data?.runs ?? [];
  const run = index.data ? (resolveChoice(entries, state.profile)?.run ?? null) : null;
  useEffect(() => {
    // A link should go on naming the run that it shows when runs are added.
    if (run !== null && state.profile.run === null) set({ profile: { ...state.profile, run } });
  }, [run, state.profile.run]);

  const empty = index.data !== null && entries.length === 0;
  const openSearch = entries.length > 0 ? () => setSheet("search") : null;
  const openKeys = (): void => setSheet("keys");
  return (
    <>
      <a
        class="skip-link"
        href="#page"
        onClick={(event) => {
          // The address belongs to TensorBoard.
          event.preventDefault();
          document.querySelector<HTMLElement>("main h1, main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <Header index={empty ? null : index.data} busy={index.busy} onRefresh={onRefresh} onSearch={openSearch} onKeys={openKeys} />
      {empty ? (
        <EmptyState logdir={index.data!.logdir} />
      ) : (
        <main id="page" tabIndex={-1}>
          {index.error && <ErrorMessage text={index.error.message} onRetry={() => void index.check()} old={index.data !== null} />}
          {!index.data && index.slow && <PageSkeleton />}
          {index.data && state.profile.run !== null && (
            <ErrorBoundary of={`${state.page} ${state.profile.run}`}>
              <PageView entries={entries} />
            </ErrorBoundary>
          )}
        </main>
      )}
      <AboutFile />
      <PageKeys onSearch={openSearch} onHelp={openKeys} />
      {sheet === "search" && <SearchDialog entries={entries} onClose={() => setSheet(null)} />}
      {sheet === "keys" && <KeyHelp onClose={() => setSheet(null)} />}
    </>
  );
}

function noticeOf(news: NonNullable<ReturnType<typeof newsOf>>, shown: boolean, hasRange: boolean): Notice | null {
  const { latest, before, runs } = news;
  if (!latest && runs.length === 0) return null;
  const keeps = hasRange ? "You look at iterations of the one before, which stays." : "The one that you chose stays.";
  return {
    latest: latest && { run: latest.run, cycle: latest.cycle, newSession: latest.session !== before?.session, shown, keeps },
    runs,
  };
}
