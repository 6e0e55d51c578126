/** One finding: what it should save and what to change; what was seen, the code and the derivation unfold below. */
import type { FindingItem, Reading, RuleLine, RunEntry } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { SeverityBadge } from "../../components/Severity";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { formatUnit } from "../../format/unit";
import { EvidenceList } from "./EvidenceList";
import { Inline } from "./Inline";
import { OtherRuns } from "./OtherRuns";
import { Price } from "./Price";
import { References } from "./References";
import type { Scale } from "./SavingLine";
import type { Aside } from "./setAside";

/** No spaces: ARIA attributes hold lists of ids. */
export const findingElementId = (id: string): string => `finding-${id}`;

interface FindingCardProps {
  finding: FindingItem;
  /** What its rule says of itself; undefined for a rule that the page does not list. */
  rule: RuleLine | undefined;
  /** Its place in the list, from 1. */
  number: number;
  scale: Scale;
  entries: RunEntry[];
  open: boolean;
  onToggle: () => void;
  onSetAside: (aside: Aside) => void;
}

export function FindingCard({ finding, rule, number, scale, entries, open, onToggle, onSetAside }: FindingCardProps) {
  const id = findingElementId(finding.id);
  const title = `${id}-title`;
  return (
    <article class="card finding" id={id} tabIndex={-1} aria-labelledby={title} data-testid={`finding-${finding.rule}`}>
      <div class="finding-head">
        <Price saving={finding.saving} scale={scale} brief={!open} />
        <div class="finding-what">
          <h2 id={title}>
            <span class="finding-number">{number}.</span> {finding.title}
          </h2>
          <p class="finding-tags">
            <Term of="severity">
              <SeverityBadge severity={finding.severity} />
            </Term>
            {open && (
              <span>
                <Term of="confidence">confidence</Term> {finding.confidence}
              </span>
            )}
            {open && rule && <span>{rule.topic}</span>}
          </p>
          {open && (
            <p class="finding-change">
              <Inline text={finding.change} />
            </p>
          )}
        </div>
        <div class="finding-actions">
          <button
            type="button"
            class="button button-small"
            aria-expanded={open}
            aria-controls={`${id}-details`}
            aria-describedby={title}
            data-testid="finding-details"
            onClick={onToggle}
          >
            {open ? "Less" : "Details"}
          </button>
          <button
            type="button"
            class="button button-small"
            aria-describedby={title}
            title="You changed it: it moves to the end of the list"
            data-testid="finding-resolve"
            onClick={() => onSetAside("resolved")}
          >
            Done
          </button>
          <button
            type="button"
            class="button button-small"
            aria-describedby={title}
            title="You will not change it: it moves to the end of the list, in every run"
            data-testid="finding-dismiss"
            onClick={() => onSetAside("dismissed")}
          >
            Dismiss
          </button>
        </div>
      </div>
      <div id={`${id}-details`} hidden={!open}>
        {open && <Details finding={finding} rule={rule} entries={entries} />}
      </div>
    </article>
  );
}

function Details({
  finding,
  rule,
  entries,
}: {
  finding: FindingItem;
  rule: RuleLine | undefined;
  entries: RunEntry[];
}) {
  return (
    <>
      <div class="finding-body">
        <div>
          <h3>What was seen</h3>
          <p>
            <Inline text={finding.seen} />
          </p>
          <Readings readings={finding.readings} />
          {finding.evidence.length > 0 && <EvidenceList rows={finding.evidence} />}
        </div>
        <div>
          {finding.code && (
            <>
              <h3>The change in code</h3>
              <CodeBlock code={finding.code} label="Code of the change" />
            </>
          )}
          <h3>
            <Term of="saving">Estimated saving per step</Term>
          </h3>
          <p>
            <Inline
              text={
                finding.saving
                  ? finding.saving.derivation
                  : finding.saving_unknown_because || "The saving cannot be estimated from this profile."
              }
            />
          </p>
          {finding.confirm && (
            <>
              <h3>What would confirm it</h3>
              <p>
                <Inline text={finding.confirm} />
              </p>
            </>
          )}
          {finding.saving && <OtherRuns entries={entries} rule={finding.rule} />}
          {rule?.ignore_when && (
            <>
              <h3>When to leave it</h3>
              <p>
                <Inline text={rule.ignore_when} />
              </p>
            </>
          )}
        </div>
      </div>
      <footer class="finding-foot">
        <References references={finding.references} />
        <span class="muted small">
          rule <code>{finding.rule}</code>
          {finding.peers.map((peer) => `, in ${peer.tool}: ${peer.name}`)}
        </span>
      </footer>
    </>
  );
}

function Readings({ readings }: { readings: Reading[] }) {
  if (readings.length === 0) return null;
  return (
    <table class="readings">
      <thead>
        <tr>
          <th scope="col">Reading</th>
          <th scope="col" class="right">
            Value
          </th>
          <th scope="col" class="right">
            Threshold
          </th>
        </tr>
      </thead>
      <tbody>
        {readings.map((reading) => (
          <tr key={reading.label}>
            <td>{reading.label}</td>
            <td class="right">
              <Value value={reading.value} unit={reading.unit} />
            </td>
            <td class="right muted">
              {reading.threshold === null ? "–" : formatUnit(reading.threshold, reading.unit)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
