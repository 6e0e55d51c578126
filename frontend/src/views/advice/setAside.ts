/** Which findings the user set aside: dismissed in every run, or marked as done in the run that is shown. */
import type { ViewState } from "../../state/viewState";

export type Aside = "dismissed" | "resolved";

type Marks = Pick<ViewState, "dismissed" | "resolved" | "profile">;

/** What is done in the run that is shown: marks of another run say nothing about this one. */
function done({ resolved, profile }: Marks): readonly string[] {
  return resolved.run === null || resolved.run === profile.run ? resolved.rules : [];
}

/** How a rule's finding was set aside; null where it was not. */
export function asideOf(state: Marks, rule: string): Aside | null {
  if (state.dismissed.includes(rule)) return "dismissed";
  return done(state).includes(rule) ? "resolved" : null;
}

/** All rules set aside, in a stable order. */
export function namesSetAside(state: Marks): string[] {
  return [...new Set([...state.dismissed, ...done(state)])].sort();
}

/** The change of state that sets a rule's finding aside in one way and takes it back from the other; null takes it back. */
export function setAside(state: Marks, rule: string, aside: Aside | null): Partial<ViewState> {
  const without = (names: readonly string[]): string[] => names.filter((name) => name !== rule);
  const rules = without(done(state));
  return {
    dismissed: aside === "dismissed" ? [...without(state.dismissed), rule] : without(state.dismissed),
    resolved: { run: state.profile.run, rules: aside === "resolved" ? [...rules, rule] : rules },
  };
}
