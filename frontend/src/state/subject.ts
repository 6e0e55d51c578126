/** What the pages are filtered to: an op, a kernel or a module; and its spelling in the address. Pure. */
import type { ViewState } from "./viewState";

export interface Subject {
  kind: "op" | "kernel" | "module";
  /** Of an op or a kernel its id; of a module its key as in `views/modules/tree.ts`. */
  id: string;
}

export const subjectText = (subject: Subject | null): string | null => (subject ? `${subject.kind}:${subject.id}` : null);

export function parseSubject(text: string | null): Subject | null {
  const found = /^(op|kernel|module):([^]+)$/.exec(text ?? "");
  return found ? { kind: found[1] as Subject["kind"], id: found[2]! } : null;
}

/**
 * A change of state, with the filter dropped where another page is opened for one thing that the filter may not hold: a link shows
 * what it names.
 */
export function withoutForeignFilter(state: ViewState, change: Partial<ViewState>): Partial<ViewState> {
  const opens = change.page !== undefined && change.page !== state.page && Boolean(change.op ?? change.kernel ?? change.module ?? change.finding);
  return state.about !== null && change.about === undefined && opens ? { ...change, about: null } : change;
}
