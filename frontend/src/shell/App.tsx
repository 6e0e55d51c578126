/** The whole page: reads the runs, provides state, theme, connection and keys, and draws header and page. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Client } from "../api/client";
import type { Source } from "../api/source";
import type { RunIndex } from "../api/types";
import { ConnectionContext } from "../api/useResource";
import { ErrorBoundary, ErrorMessage } from "../components/Message";
import { PageSkeleton } from "../components/Skeleton";
import { TooltipLayer } from "../components/TooltipLayer";
import { readPairs } from "../state/hash";
import { precisionPair, resolveChoice } from "../state/profileChoice";
import { connectAddress } from "../state/address";
import { followTheme, themeSignal } from "../state/theme";
import { AboutFile } from "./AboutFile";
import { Announcer } from "./Announcer";
import { ImportOffer } from "../features/ImportOffer";
import { EmptyState } from "./EmptyState";
import { Header } from "./Header";
import { KeyHelp } from "./keys/KeyHelp";
import { listenForKeys } from "../keys/listen";
import { PageKeys } from "./keys/PageKeys";
import { Shortcuts } from "../keys/shortcuts";
import { ShortcutContext } from "../keys/useShortcut";
import { follows, held, updatesOf } from "./live/profileUpdates";
import { UpdateNotice, type Notice } from "./live/UpdateNotice";
import { useRuns, type Runs } from "./live/useRuns";
import { PageView } from "./PageView";
import { ALL_PARAMS, loadPages } from "./routes";
import { SearchDialog } from "./search/SearchDialog";
import { assign, useParam } from "../state/param";
import { pageParam, profileParam, rangeParam } from "../state/sharedParams";
import { baseParam, candidateParam } from "../views/compare/params";

/** When the code of the other pages is asked for. */
const OTHER_PAGES_MS = 1_500;

/** `base` is where answers come from: the folder of the routes, or a file that holds them. */
export function App({ base }: { base: Source | URL }) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: an address is a new object in each rendering, and the same client as long as it reads the same.
  const client = useMemo(() => new Client(base), [base instanceof URL ? base.href : base]);
  const [generation, setGeneration] = useState(0);
  const shortcuts = useMemo(() => new Shortcuts(), []);

  // Before the first drawing, which shows what the address says.
  const disconnect = useMemo(() => connectAddress(ALL_PARAMS), []);
  useEffect(() => disconnect, [disconnect]);
  useEffect(
    () =>
      followTheme((next) => {
        document.documentElement.dataset["theme"] = next;
        themeSignal.value = next;
      }),
    [],
  );
  useEffect(() => listenForKeys(shortcuts), [shortcuts]);
  useEffect(() => {
    // Once the first page has had its time.
    const timer = setTimeout(() => loadPages().catch(() => undefined), OTHER_PAGES_MS);
    return () => clearTimeout(timer);
  }, []);

  const [notice, setNotice] = useState<Notice | null>(null);
  const onUpdate = (before: RunIndex, after: RunIndex): void => {
    const profile = profileParam.value;
    const range = rangeParam.value;
    const [base, candidate] = [baseParam.value, candidateParam.value];
    const updates = updatesOf(before.runs, after.runs, profile);
    if (!updates) return;
    client.forget(updates.changed);
    setGeneration((count) => count + 1);
    const shown = follows(profile, range !== null);
    assign(
      profileParam.to(held(before.runs, profile, range !== null)),
      baseParam.to(held(before.runs, base, base.range !== null)),
      candidateParam.to(held(before.runs, candidate, candidate.range !== null)),
    );
    const said = noticeOf(updates, shown, range !== null);
    // What was said and not closed is still so.
    if (said)
      setNotice((open) => ({
        latest: said.latest ?? open?.latest ?? null,
        runs: [...(open?.runs ?? []), ...said.runs],
      }));
  };
  const runs = useRuns(client, onUpdate);
  const refresh = (): void => {
    client.clear();
    setGeneration((count) => count + 1);
    void runs.check();
  };
  const connection = useMemo(() => ({ client, generation }), [client, generation]);
  return (
    <ConnectionContext.Provider value={connection}>
      <ShortcutContext.Provider value={shortcuts}>
        <Content index={runs} onRefresh={refresh} />
        {notice && <UpdateNotice notice={notice} onClose={() => setNotice(null)} />}
        <TooltipLayer />
        <Announcer />
      </ShortcutContext.Provider>
    </ConnectionContext.Provider>
  );
}

/** Header and page, once the runs are known. */
function Content({ index, onRefresh }: { index: Runs; onRefresh: () => void }) {
  const [sheet, setSheet] = useState<"search" | "keys" | null>(null);
  const entries = index.data?.runs ?? [];
  const profile = useParam(profileParam);
  const run = index.data ? (resolveChoice(entries, profile)?.run ?? null) : null;
  useEffect(() => {
    if (run === null || profile.run !== null) return;
    // An address that asks for nothing shows what the runs are for: full precision and AMP next to each other.
    const pair = readPairs().length === 0 ? precisionPair(entries, null) : null;
    // A link should go on naming the run that it shows when runs are added.
    if (pair) assign(pageParam.to("compare"), profileParam.to({ ...profile, run: pair.a }));
    else profileParam.value = { ...profile, run };
  }, [run, profile, entries]);

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
      <Header
        index={empty ? null : index.data}
        busy={index.busy}
        onRefresh={onRefresh}
        onSearch={openSearch}
        onKeys={openKeys}
      />
      {empty ? (
        <EmptyState logdir={index.data!.logdir} importCommand={index.data!.import_command} />
      ) : (
        <main id="page" tabIndex={-1}>
          {index.error && (
            <ErrorMessage text={index.error.message} onRetry={() => void index.check()} old={index.data !== null} />
          )}
          {!index.data && index.slow && <PageSkeleton />}
          {index.data && profileParam.value.run !== null && (
            <ErrorBoundary of={`${pageParam.value} ${profileParam.value.run}`}>
              {pageParam.value === "runs" && <ImportOffer command={index.data.import_command} />}
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

function noticeOf(
  updates: NonNullable<ReturnType<typeof updatesOf>>,
  shown: boolean,
  hasRange: boolean,
): Notice | null {
  const { latest, before, runs } = updates;
  if (!latest && runs.length === 0) return null;
  const keeps = hasRange ? "You look at iterations of the one before, which stays." : "The one that you chose stays.";
  return {
    latest: latest && {
      run: latest.run,
      cycle: latest.cycle,
      newSession: latest.session !== before?.session,
      shown,
      keeps,
    },
    runs,
  };
}
