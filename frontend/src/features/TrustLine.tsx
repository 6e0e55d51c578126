/** Whether a recording can be trusted: the verdict and its first reason in one line, which opens to all reasons. */
import type { Query } from "../api/source";
import type { TrustLevel } from "../api/types";
import { useResource } from "../api/useResource";

const MARKS: Record<TrustLevel, string> = { good: "✓", fair: "!", poor: "✕" };

/** `query` names the recording and its iterations; `of` says which of several it is. */
export function TrustLine({ query, of = "Recording" }: { query: Query; of?: string }) {
  const { data } = useResource("trust", query, JSON.stringify(query));
  // The line keeps its place while it is asked for, so that nothing below it moves.
  if (!data) return <div class="trust" aria-hidden="true" />;
  const { verdict, reasons } = data;
  const word = (
    <span class={`trust-word trust-${verdict}`}>
      <span aria-hidden="true">{MARKS[verdict]}</span> {of}: {verdict}
    </span>
  );
  if (reasons.length === 0) {
    return (
      <div class="trust" data-testid="trust" data-verdict={verdict}>
        {word}
      </div>
    );
  }
  return (
    <details class="trust" data-testid="trust" data-verdict={verdict}>
      <summary>
        {word} <span class="trust-first">{reasons[0]!.text}</span>
        {reasons.length > 1 && <span class="trust-more">and {reasons.length - 1} more</span>}
      </summary>
      <ul>
        {reasons.map((reason) => (
          <li key={`${reason.code} ${reason.text}`} class={`trust-${reason.severity}`}>
            <span class="trust-mark" aria-hidden="true">
              {MARKS[reason.severity]}
            </span>
            <span>
              <span class="hidden">{reason.severity}: </span>
              {reason.text}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
