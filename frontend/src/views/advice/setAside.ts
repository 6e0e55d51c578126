/** Which findings the user set aside: dismissed in every run, or marked as done in the run that is shown. */
import { assign } from "../../state/param";
import { profileParam } from "../../state/sharedParams";
import { dismissedParam, resolvedParam } from "./params";

export type Aside = "dismissed" | "resolved";

/** What is done in the run that is shown: marks of another run do not apply to this one. */
function done(): readonly string[] {
  const { run, rules } = resolvedParam.value;
  return run === null || run === profileParam.value.run ? rules : [];
}

/** How a rule's finding was set aside; null where it was not. */
export function asideOf(rule: string): Aside | null {
  if (dismissedParam.value.includes(rule)) return "dismissed";
  return done().includes(rule) ? "resolved" : null;
}

/** All rules set aside, in a stable order. */
export const namesSetAside = (): string[] => [...new Set([...dismissedParam.value, ...done()])].sort();

/** Sets a rule's finding aside in one way and takes it back from the other; null takes it back. */
export function setAside(rule: string, aside: Aside | null): void {
  const without = (names: readonly string[]): string[] => names.filter((name) => name !== rule);
  const dismissed = without(dismissedParam.value);
  const rules = without(done());
  assign(
    dismissedParam.to(aside === "dismissed" ? [...dismissed, rule] : dismissed),
    resolvedParam.to({ run: profileParam.value.run, rules: aside === "resolved" ? [...rules, rule] : rules }),
  );
}
