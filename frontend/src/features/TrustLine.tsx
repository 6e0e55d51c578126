/** Whether a recording can be trusted: the verdict and its first reason in one line, which opens to all reasons. */
import type { Query } from "../api/source";
import type { TrustLevel, TrustVerdict } from "../api/types";
import { useResource } from "../api/useResource";

/** "short": the verdict alone until it is opened, as of every good recording; "banner": above all else, as no figure is reliable. */
type Form = "line" | "short" | "banner";

const MARKS: Record<TrustLevel, string> = { good: "✓", fair: "!", poor: "✕" };

/** `query` names the recording and its iterations; `of` says which of several it is. */
export function TrustLine({ query, of = "Recording", form = "line" }: { query: Query; of?: string; form?: Form }) {
  const { data } = useResource("trust", query, JSON.stringify(query));
  // The line keeps its place while it is asked for, so that nothing below it moves.
  return data ? <Trust of={of} trust={data} form={form} /> : <div class="trust" aria-hidden="true" />;
}

interface TrustProps {
  trust: TrustVerdict;
  of?: string;
  form?: Form;
}

/** What is wrong; what to do about it follows where the banner is opened. */
const firstSentence = (text: string): string => /^.*?[.](?= |$)/.exec(text)?.[0] ?? text;

/** The verdict where its reasons are known already. */
export function Trust({ trust: { verdict, reasons }, of = "Recording", form: asked = "line" }: TrustProps) {
  const form = verdict === "good" ? "short" : asked;
  const style = form === "banner" ? "trust trust-banner" : "trust";
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
  const more = reasons.length - (form === "short" ? 0 : 1);
  return (
    <details class={style} data-testid="trust" data-verdict={verdict}>
      <summary>
        {word} {form !== "short" && <span class="trust-first">{firstSentence(reasons[0]!.text)}</span>}
        {more > 0 && <span class="trust-more">{form === "short" ? "why" : `and ${more} more`}</span>}
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
