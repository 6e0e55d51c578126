/** Which severities are shown: a button each with its count. None pressed means all. */
import type { FindingItem } from "../../api/types";
import { useView } from "../../state/store";
import { SEVERITIES, type Severity } from "../../state/viewState";

export function SeverityFilter({ findings }: { findings: FindingItem[] }) {
  const { state, set } = useView();
  const present = SEVERITIES.filter((severity) => findings.some((finding) => finding.severity === severity));
  if (present.length < 2 && state.severities.length === 0) return null;
  const toggle = (severity: Severity): void => {
    const pressed = state.severities.includes(severity);
    const chosen = SEVERITIES.filter((one) => (one === severity ? !pressed : state.severities.includes(one)));
    set({ severities: chosen.length === SEVERITIES.length ? [] : chosen });
  };
  return (
    <div class="severity-filter" role="group" aria-label="Severities shown" data-testid="severity-filter">
      {SEVERITIES.map((severity) => {
        const count = findings.filter((finding) => finding.severity === severity).length;
        return (
          <button type="button" key={severity} class="button button-small" aria-pressed={state.severities.includes(severity)} disabled={count === 0 && !state.severities.includes(severity)} onClick={() => toggle(severity)}>
            {severity} <span class="muted">{count}</span>
          </button>
        );
      })}
    </div>
  );
}
