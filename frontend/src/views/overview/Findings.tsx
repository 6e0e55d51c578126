/** The findings in one line each; a click opens the Advice page there. */
import type { FindingLine } from "../../api/types";
import { Card } from "../../components/Card";
import { SeverityBadge } from "../../components/Severity";
import { exactNs, formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { asideOf } from "../advice/setAside";
import { goTo } from "../../state/navigate";
import { findingParam } from "../advice/params";

const SHOWN = 6;

export function Findings({ findings }: { findings: FindingLine[] }) {
  const open = findings.filter((finding) => asideOf(finding.rule) === null);
  return (
    <Card
      title="Advice"
      testId="overview-findings"
      actions={
        <button type="button" class="link" onClick={() => goTo("advice", findingParam.to(null))}>
          all findings
        </button>
      }
    >
      {open.length === 0 && (
        <p class="muted">
          {findings.length === 0 ? "No rule found anything to change." : "All findings are dismissed or done."}
        </p>
      )}
      <ol class="finding-lines">
        {open.slice(0, SHOWN).map((finding) => (
          <li key={finding.id}>
            <button type="button" class="finding-line" onClick={() => goTo("advice", findingParam.to(finding.id))}>
              <SeverityBadge severity={finding.severity} />
              <span class="finding-line-title">{finding.title}</span>
              <span
                class="finding-line-saving"
                title={finding.saving_ns === null ? undefined : exactNs(finding.saving_ns)}
              >
                {finding.saving_ns === null ? (
                  <span class="missing">saving unknown</span>
                ) : (
                  `saves ~${formatNs(finding.saving_ns)} a step (${formatPercent(finding.saving_percent)})`
                )}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </Card>
  );
}
