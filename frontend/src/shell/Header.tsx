/** The bar at the top: pages, search, pickers, refresh. */
import { useEffect, useRef } from "preact/hooks";
import type { RunIndex } from "../api/types";
import { useFile } from "../api/useResource";
import { PAGES } from "../state/pages";
import { ThemeButton } from "./AboutFile";
import { keyNames } from "./keys/KeyHelp";
import { ProfilePicker } from "../features/pickers/ProfilePicker";
import { openPage, showProfile } from "../state/navigate";
import { pageParam, profileParam } from "../state/sharedParams";
import { ROUTES } from "./routes";
import { useParam } from "../state/param";

interface HeaderProps {
  index: RunIndex | null;
  busy: boolean;
  onRefresh: () => void;
  /** Null where there is nothing to search. */
  onSearch: (() => void) | null;
  onKeys: () => void;
}

/** The test ids use hyphens. */
const testId = (page: string): string => `nav-${page.replace("_", "-")}`;

export function Header({ index, busy, onRefresh, onSearch, onKeys }: HeaderProps) {
  const file = useFile();
  const page = useParam(pageParam);
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page moves the mark that is looked for.
  useEffect(() => {
    // Where the pages are a line to swipe, the one that is shown stands in its middle.
    const shown = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && shown)
      nav.current.scrollLeft = shown.offsetLeft + (shown.offsetWidth - nav.current.clientWidth) / 2;
  }, [page]);
  return (
    <header class="top">
      <nav aria-label="Pages" ref={nav}>
        {PAGES.map((name) => (
          <button
            type="button"
            key={name}
            data-testid={testId(name)}
            aria-current={page === name ? "page" : undefined}
            title={`Keys: g, then ${ROUTES[name].key}`}
            onClick={() => openPage(name)}
          >
            {ROUTES[name].title}
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
        {onSearch && (
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
        )}
        {file ? (
          <ThemeButton />
        ) : (
          <button
            type="button"
            class="button"
            data-testid="refresh"
            disabled={busy}
            onClick={onRefresh}
            title="Ask TensorBoard for the runs again"
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
    </header>
  );
}
