/** Which severities are shown: a button each with its count. None pressed means all. */
import type { FindingItem } from "../../api/types";
import { assign } from "../../state/param";
import { SEVERITIES, type Severity, severitiesParam } from "./params";

export function SeverityFilter({ findings }: { findings: FindingItem[] }) {
  const present = SEVERITIES.filter((severity) => findings.some((finding) => finding.severity === severity));
  if (present.length < 2 && severitiesParam.value.length === 0) return null;
  const toggle = (severity: Severity): void => {
    const pressed = severitiesParam.value.includes(severity);
    const chosen = SEVERITIES.filter((one) => (one === severity ? !pressed : severitiesParam.value.includes(one)));
    assign(severitiesParam.to(chosen.length === SEVERITIES.length ? [] : chosen));
  };
  return (
    <div class="severity-filter" role="group" aria-label="Severities shown" data-testid="severity-filter">
      {SEVERITIES.map((severity) => {
        const count = findings.filter((finding) => finding.severity === severity).length;
        return (
          <button
            type="button"
            key={severity}
            class="button button-small"
            aria-pressed={severitiesParam.value.includes(severity)}
            disabled={count === 0 && !severitiesParam.value.includes(severity)}
            onClick={() => toggle(severity)}
          >
            {severity} <span class="muted">{count}</span>
          </button>
        );
      })}
    </div>
  );
}
