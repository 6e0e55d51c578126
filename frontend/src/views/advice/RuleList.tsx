/** The rules that gave no finding, folded away: by topic, with what each of them saw, to be searched. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { RuleLine, RuleOutcome } from "../../api/types";
import { Defined } from "../../components/Term";
import { Inline, plainText } from "./Inline";

const OUTCOMES: Record<RuleOutcome, string> = {
  fired: "fired",
  silent: "nothing to change",
  not_applicable: "does not apply",
  failed: "failed",
};

/** The lines that hold every word of the search, and are of the outcome, "" for any. */
export function matching(rules: RuleLine[], search: string, outcome: string): RuleLine[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return rules.filter((rule) => {
    const text = `${rule.rule} ${rule.title} ${rule.topic} ${rule.why} ${rule.looks_for}`.toLowerCase();
    return (outcome === "" || rule.outcome === outcome) && words.every((word) => text.includes(word));
  });
}

/** Lines that come in the order of their topics, as groups. */
function byTopic(rules: RuleLine[]): [topic: string, rules: RuleLine[]][] {
  const groups = new Map<string, RuleLine[]>();
  for (const rule of rules) groups.set(rule.topic, [...(groups.get(rule.topic) ?? []), rule]);
  return [...groups];
}

/** `named` is a rule that the address asks for: the list opens where it is one of these. */
export function RuleList({ rules, named = null }: { rules: RuleLine[]; named?: string | null }) {
  const [search, setSearch] = useState("");
  const [outcome, setOutcome] = useState("");
  const status = useId();
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const line = [...(box.current?.querySelectorAll<HTMLElement>("[data-rule]") ?? [])].find(
      (element) => element.dataset["rule"] === named,
    );
    if (!line || !box.current) return;
    box.current.open = true;
    line.scrollIntoView?.({ block: "center" });
    line.focus();
  }, [named]);
  const silent = rules.filter((rule) => rule.outcome !== "fired");
  if (silent.length === 0) return null;
  const outcomes = (["silent", "not_applicable", "failed"] as const).filter((name) =>
    silent.some((rule) => rule.outcome === name),
  );
  const failed = silent.filter((rule) => rule.outcome === "failed").length;
  const shown = matching(silent, search, outcome);
  return (
    <details class="card rules" ref={box} data-testid="silent-rules">
      <summary>
        {silent.length} of {rules.length} rules gave no finding
        {failed > 0 && <span class="rule-failed">, {failed} of them failed</span>}
      </summary>
      <div class="rules-bar">
        <input
          type="search"
          aria-label="Search these rules"
          placeholder="Search"
          value={search}
          aria-describedby={status}
          data-testid="rules-search"
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {outcomes.length > 1 && (
          <select
            aria-label="Outcome"
            value={outcome}
            data-testid="rules-outcome"
            onChange={(event) => setOutcome(event.currentTarget.value)}
          >
            <option value="">all outcomes</option>
            {outcomes.map((name) => (
              <option key={name} value={name}>
                {OUTCOMES[name]} ({silent.filter((rule) => rule.outcome === name).length})
              </option>
            ))}
          </select>
        )}
        <span class="muted small" id={status} role="status">
          {shown.length < silent.length && `${shown.length} of ${silent.length}`}
        </span>
      </div>
      {shown.length === 0 && <p class="muted">No rule here says that.</p>}
      {byTopic(shown).map(([topic, group]) => (
        <section key={topic}>
          <h3>{topic}</h3>
          <ul>
            {group.map((rule) => (
              <li
                key={rule.rule}
                tabIndex={-1}
                data-rule={rule.rule}
                aria-current={rule.rule === named ? "true" : undefined}
                data-testid={`rule-${rule.rule}`}
              >
                <span class="rule-title">
                  {rule.looks_for ? <Defined text={plainText(rule.looks_for)}>{rule.title}</Defined> : rule.title}
                </span>
                <span class={`rule-outcome rule-${rule.outcome}`}>{OUTCOMES[rule.outcome]}</span>
                <span class="rule-why">
                  <Inline text={rule.why} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </details>
  );
}
