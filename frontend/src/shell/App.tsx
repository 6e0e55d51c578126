/** The whole page: reads the runs, provides state, theme and connection, and draws header and page. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Client } from "../api/client";
import { ConnectionContext, useResource } from "../api/useResource";
import { ErrorBoundary, ErrorMessage } from "../components/Message";
import { PageSkeleton } from "../components/Skeleton";
import { TooltipLayer } from "../components/TooltipLayer";
import { resolveChoice } from "../state/profileChoice";
import { createStore, useView, ViewContext } from "../state/store";
import { followTheme, type Theme } from "../state/theme";
import { ThemeContext } from "../state/ThemeContext";
import { EmptyState } from "./EmptyState";
import { Header } from "./Header";
import { PageView } from "./PageView";

export function App({ base }: { base: URL }) {
  const client = useMemo(() => new Client(base), [base.href]);
  const [generation, setGeneration] = useState(0);
  const store = useMemo(createStore, []);
  const [state, setState] = useState(store.get());
  const [theme, setTheme] = useState<Theme>("light");

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

  const refresh = (): void => {
    client.clear();
    setGeneration((count) => count + 1);
  };
  const connection = useMemo(() => ({ client, generation }), [client, generation]);
  const view = useMemo(() => ({ state, set: store.set }), [state, store]);
  return (
    <ThemeContext.Provider value={theme}>
      <ConnectionContext.Provider value={connection}>
        <ViewContext.Provider value={view}>
          <Content onRefresh={refresh} />
          <TooltipLayer />
        </ViewContext.Provider>
      </ConnectionContext.Provider>
    </ThemeContext.Provider>
  );
}

/** Header and page, once the runs are known. */
function Content({ onRefresh }: { onRefresh: () => void }) {
  const { state, set } = useView();
  const index = useResource("runs", {}, "runs");
  const run = index.data ? (resolveChoice(index.data.runs, state.profile)?.run ?? null) : null;
  useEffect(() => {
    // A link should go on naming the run that it shows when runs are added.
    if (run !== null && state.profile.run === null) set({ profile: { ...state.profile, run } });
  }, [run, state.profile.run]);

  if (index.data?.runs.length === 0) {
    return (
      <>
        <Header index={null} busy={index.stale} onRefresh={onRefresh} />
        <EmptyState logdir={index.data.logdir} />
      </>
    );
  }
  return (
    <>
      <Header index={index.data} busy={index.stale} onRefresh={onRefresh} />
      <main>
        {index.error && <ErrorMessage text={index.error.message} />}
        {!index.data && index.slow && <PageSkeleton />}
        {index.data && state.profile.run !== null && (
          <ErrorBoundary of={`${state.page} ${state.profile.run}`}>
            <PageView entries={index.data.runs} />
          </ErrorBoundary>
        )}
      </main>
    </>
  );
}
