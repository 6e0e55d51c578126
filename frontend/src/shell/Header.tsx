/** The bar at the top: pages, pickers, refresh. */
import type { RunIndex } from "../api/types";
import { PAGE_LABELS, PAGES } from "../state/pages";
import { useView } from "../state/store";
import { ProfilePicker } from "./ProfilePicker";

interface HeaderProps {
  index: RunIndex | null;
  busy: boolean;
  onRefresh: () => void;
}

/** The test ids use hyphens. */
const testId = (page: string): string => `nav-${page.replace("_", "-")}`;

export function Header({ index, busy, onRefresh }: HeaderProps) {
  const { state, set } = useView();
  return (
    <header class="top">
      <nav aria-label="Pages">
        {PAGES.map((page) => (
          <button
            type="button"
            key={page}
            data-testid={testId(page)}
            aria-current={state.page === page ? "page" : undefined}
            onClick={() => set({ page })}
          >
            {PAGE_LABELS[page]}
          </button>
        ))}
      </nav>
      <div class="top-right">
        {index && state.page !== "compare" && state.page !== "runs" && (
          <ProfilePicker
            entries={index.runs}
            choice={state.profile}
            label="Run"
            onChange={(profile) => set({ profile, range: null, op: null, kernel: null, finding: null, device: null })}
          />
        )}
        <button type="button" class="button" data-testid="refresh" disabled={busy} onClick={onRefresh} title="Ask TensorBoard for the runs again">
          {busy ? "Refreshing" : "Refresh"}
        </button>
      </div>
    </header>
  );
}
