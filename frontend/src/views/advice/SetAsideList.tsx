/** Findings that the user dismissed or marked as done, folded away, each with the way back. */
import type { FindingItem } from "../../api/types";
import { Value } from "../../components/Value";
import type { Aside } from "./setAside";
import { findingParam } from "./params";

const WORDS: Record<Aside, { summary: string; undo: string }> = {
  dismissed: { summary: "dismissed", undo: "Undo" },
  resolved: { summary: "marked as done", undo: "Not done" },
};

interface SetAsideListProps {
  aside: Aside;
  findings: FindingItem[];
  onRestore: (finding: FindingItem) => void;
}

export function SetAsideList({ aside, findings, onRestore }: SetAsideListProps) {
  if (findings.length === 0) return null;
  const named = findings.some((finding) => finding.id === findingParam.value);
  return (
    <details class="card set-aside" data-testid={`${aside}-findings`} open={named}>
      <summary>
        {findings.length} {WORDS[aside].summary}
      </summary>
      {aside === "resolved" && (
        <p class="set-aside-note muted small">
          This recording was made before the change: record the run again, and compare the two.
        </p>
      )}
      <ul>
        {findings.map((finding) => (
          <li key={finding.id} data-testid={`${aside}-${finding.rule}`}>
            <span class="num set-aside-saving">
              <Value value={finding.saving?.expected_ns ?? null} unit="ns" />
            </span>
            <span>{finding.title}</span>
            <button
              type="button"
              class="button button-small"
              aria-label={`${WORDS[aside].undo}: ${finding.title}`}
              onClick={() => onRestore(finding)}
            >
              {WORDS[aside].undo}
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
