/** Whether a recording can be trusted: the verdict in one word, which opens to its reasons. */
import type { Query } from "../api/source";
import type { TrustLevel, TrustVerdict } from "../api/types";
import { useResource } from "../api/useResource";

const MARKS: Record<TrustLevel, string> = { good: "✓", fair: "!", poor: "✕" };

/** `query` names the recording and its iterations; `of` says which of several it is. */
export function TrustLine({ query, of = "Recording" }: { query: Query; of?: string }) {
  const { data } = useResource("trust", query, JSON.stringify(query));
  // The line keeps its place while it is asked for, so that nothing below it moves.
  return data ? <Trust of={of} trust={data} /> : <div class="trust" aria-hidden="true" />;
}

interface TrustProps {
  trust: TrustVerdict;
  of?: string;
  /** Above all else, as no figure is reliable. */
  banner?: boolean;
}

/** The verdict where its reasons are known already. */
export function Trust({ trust: { verdict, reasons }, of = "Recording", banner = false }: TrustProps) {
  const style = banner ? "trust trust-banner" : "trust";
  const word = (
    <span class={`trust-word trust-${verdict}`}>
      <span aria-hidden="true">{MARKS[verdict]}</span> {of}: {verdict}
    </span>
  );
  if (reasons.length === 0) {
    return (
      <div class={style} data-testid="trust" data-verdict={verdict}>
        {word}
      </div>
    );
  }
  return (
    <details class={style} data-testid="trust" data-verdict={verdict}>
      <summary>
        {word} <span class="trust-more">why</span>
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
