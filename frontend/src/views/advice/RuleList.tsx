/** The rules that gave no finding, folded away, with what each of them saw. */
import type { RuleStatus } from "../../api/types";

const OUTCOMES: Record<RuleStatus["outcome"], string> = {
  fired: "fired",
  silent: "nothing to change",
  not_applicable: "does not apply",
  failed: "failed",
};

export function RuleList({ rules }: { rules: RuleStatus[] }) {
  const silent = rules.filter((rule) => rule.outcome !== "fired");
  if (silent.length === 0) return null;
  return (
    <details class="card rules" data-testid="silent-rules">
      <summary>
        {silent.length} of {rules.length} rules gave no finding
      </summary>
      <ul>
        {silent.map((rule) => (
          <li key={rule.rule} data-testid={`rule-${rule.rule}`}>
            <span class="rule-title">{rule.title}</span>
            <span class={`rule-outcome rule-${rule.outcome}`}>{OUTCOMES[rule.outcome]}</span>
            <span class="muted">{rule.why}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
