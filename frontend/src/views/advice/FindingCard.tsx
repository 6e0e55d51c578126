/** One finding: what was seen, what to change, what it should gain, how that was computed and what would confirm it. */
import type { EvidenceRow, FindingItem, Reading, Reference } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { SeverityBadge } from "../../components/Severity";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { formatUnit } from "../../format/unit";
import { useView } from "../../state/store";
import { SavingBar } from "./SavingBar";
import { evidenceTarget } from "./evidence";

export const findingElementId = (id: string): string => `finding ${id}`;

export function FindingCard({ finding }: { finding: FindingItem }) {
  const id = findingElementId(finding.id);
  const { saving } = finding;
  return (
    <article class="card finding" id={id} tabIndex={-1} aria-labelledby={`${id} title`} data-testid={`finding-${finding.rule}`}>
      <header class="finding-head">
        <SeverityBadge severity={finding.severity} />
        <h2 id={`${id} title`}>{finding.title}</h2>
        <span class="finding-saving">
          {saving ? (
            <>
              saves ~{formatNs(saving.expected_ns)} a step <span class="muted">({formatPercent(saving.percent)})</span>
            </>
          ) : (
            <span class="missing">saving unknown</span>
          )}
        </span>
      </header>
      <div class="finding-body">
        <div>
          <h3>What was seen</h3>
          <p>{finding.seen}</p>
          <Readings readings={finding.readings} />
          {finding.evidence.length > 0 && <Evidence rows={finding.evidence} />}
        </div>
        <div>
          <h3>What to change</h3>
          <p>{finding.change}</p>
          {finding.code && <CodeBlock code={finding.code} label="Code of the change" />}
          <h3>
            <Term of="saving">Estimated saving per step</Term>
          </h3>
          {saving ? <SavingBar saving={saving} /> : <p>{finding.saving_unknown_because || "No honest number can be given."}</p>}
          {finding.confirm && (
            <>
              <h3>What would confirm it</h3>
              <p>{finding.confirm}</p>
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
    </article>
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
            <td class="right muted">{reading.threshold === null ? "–" : formatUnit(reading.threshold, reading.unit)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Evidence({ rows }: { rows: EvidenceRow[] }) {
  const { set } = useView();
  return (
    <>
      <h3>Evidence</h3>
      <ul class="evidence">
        {rows.map((row, index) => {
          const target = evidenceTarget(row);
          return (
            <li key={`${row.page} ${row.id} ${index}`}>
              {target ? (
                <button type="button" class="link" onClick={() => set(target)}>
                  {row.label}
                </button>
              ) : (
                <span>{row.label}</span>
              )}
              <span class="evidence-values">
                {row.value_ns !== null && <Value value={row.value_ns} unit="ns" />}
                {row.percent !== null && <Value value={row.percent} unit="percent" />}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** Only web addresses become links. */
const isWeb = (url: string): boolean => /^https?:\/\//i.test(url);

function References({ references }: { references: Reference[] }) {
  if (references.length === 0) return <span />;
  return (
    <span class="references">
      Read on:{" "}
      {references.map((reference, index) => (
        <span key={reference.url}>
          {index > 0 && ", "}
          {isWeb(reference.url) ? (
            <a href={reference.url} target="_blank" rel="noopener noreferrer">
              {reference.title}
            </a>
          ) : (
            reference.title
          )}
        </span>
      ))}
    </span>
  );
}
