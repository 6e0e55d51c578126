/**
 * Where the focus goes when the page changes: to the heading of the new page, or to the measure that was searched for. Requested
 * where the page is changed, done by the page's head when it is drawn.
 */
import { isTyping } from "./typing";

let wanted: { term: string | null } | null = null;
let announcer: ((text: string) => void) | null = null;

/** The next page head that is drawn takes the focus; with `term`, the measure of that definition does. */
export function expectPageFocus(term: string | null = null): void {
  wanted = { term };
}

/** Sets what announces texts to screen readers; returns what ends that. */
export function onAnnounce(speak: (text: string) => void): () => void {
  announcer = speak;
  return () => {
    announcer = null;
  };
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  announcer?.(text);
}

/** Called by the heading that is there; does nothing where the page did not change. */
export function takePageFocus(heading: HTMLElement, sentence: string): void {
  if (!wanted) return;
  const { term } = wanted;
  wanted = null;
  // A text field that was entered meanwhile keeps the focus.
  if (isTyping(document.activeElement) || document.querySelector("dialog[open]")) return;
  announce(sentence);
  if (term !== null && focusTerm(term)) return;
  window.scrollTo?.(0, 0);
  heading.focus({ preventScroll: true });
}

/** The first place on the page that shows this measure; false where it is not on the page. */
export function focusTerm(term: string): boolean {
  const place = [...document.querySelectorAll<HTMLElement>("main [data-term]")].find(
    (element) => element.dataset["term"] === term,
  );
  place?.scrollIntoView?.({ block: "center" });
  place?.focus();
  return place !== undefined;
}
