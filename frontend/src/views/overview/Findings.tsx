/** The findings, one row each with a bar of what it saves on one scale; a row opens in place to the card of the Advice page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { profileQuery } from "../../api/queries";
import type { AdvicePage, FindingItem, RunEntry } from "../../api/types";
import { useResource } from "../../api/useResource";
import { Card } from "../../components/Card";
import { SeverityBadge } from "../../components/Severity";
import { ResourceView } from "../../features/ResourceView";
import { formatNs } from "../../format/duration";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { FindingCard, findingElementId } from "../advice/FindingCard";
import { Notice } from "../advice/Notice";
import { type Scale, SavingLine, scaleOf } from "../advice/SavingLine";
import { type Aside, asideOf, setAside } from "../advice/setAside";

/** The other findings are one click away. */
const SHOWN = 3;

/** They follow the figures: their forecasts take longer. */
export function Findings({ entries }: { entries: RunEntry[] }) {
  const advice = useResource("advice", profileQuery(profileParam.value, rangeParam.value), "findings");
  return (
    <Card class="summary-findings" title="What to change" testId="overview-findings">
      {advice.data === null && advice.error === null ? (
        <p class="muted finding-lines-awaited" role="status" aria-busy="true">
          The rules look at the recording …
        </p>
      ) : (
        <ResourceView resource={advice}>{(data) => <List data={data} entries={entries} />}</ResourceView>
      )}
    </Card>
  );
}

function List({ data, entries }: { data: AdvicePage; entries: RunEntry[] }) {
  const { findings } = data;
  const [opened, setOpened] = useState<string | null>(null);
  const [all, setAll] = useState(false);
  /** The finding set aside last: the way back stands in its place until the next action. */
  const [last, setLast] = useState<string | null>(null);
  const open = findings.filter((finding) => asideOf(finding.rule) === null);
  const listed = findings.filter((finding) => open.includes(finding) || finding.id === last);
  const rows = byAlternatives(listed);
  const shown = all ? rows : rows.slice(0, SHOWN);
  const scale = scaleOf(findings.map(({ saving }) => saving));

  const toggle = (id: string | null): void => {
    setLast(null);
    setOpened(id);
  };
  const putAside = (finding: FindingItem, aside: Aside): void => {
    setOpened(null);
    setLast(finding.id);
    setAside(finding.rule, aside);
  };
  return (
    <>
      {listed.length === 0 && (
        <p class="muted">
          {findings.length === 0 ? "No rule found anything to change." : "All findings are dismissed or done."}
        </p>
      )}
      <ol class="finding-lines">
        {shown.map((choices) => {
          const finding = choices.find(({ id }) => id === opened) ?? choices[0]!;
          const aside = asideOf(finding.rule);
          return (
            <li key={choices[0]!.id}>
              {aside !== null ? (
                <Notice
                  finding={finding}
                  aside={aside}
                  onUndo={() => {
                    setLast(null);
                    setAside(finding.rule, null);
                  }}
                />
              ) : choices.length > 1 && opened !== finding.id ? (
                <Choices choices={choices} scale={scale} onOpen={toggle} />
              ) : (
                <Finding
                  finding={finding}
                  rule={data.rules.find(({ rule }) => rule === finding.rule)}
                  number={findings.indexOf(finding) + 1}
                  scale={scale}
                  entries={entries}
                  open={opened === finding.id}
                  onToggle={() => toggle(opened === finding.id ? null : finding.id)}
                  onSetAside={(how) => putAside(finding, how)}
                />
              )}
              {choices.length > 1 && opened === finding.id && (
                <Choices choices={choices.filter(({ id }) => id !== opened)} scale={scale} onOpen={toggle} instead />
              )}
            </li>
          );
        })}
      </ol>
      {rows.length > shown.length && (
        <button type="button" class="link" data-testid="more-findings" onClick={() => setAll(true)}>
          {rows.length - shown.length} more
        </button>
      )}
    </>
  );
}

/** Choices of one change are one row, in the place of the best of them. */
function byAlternatives(findings: readonly FindingItem[]): FindingItem[][] {
  const rows: FindingItem[][] = [];
  for (const finding of findings) {
    const row = rows.find(
      ([first]) =>
        finding.alternatives !== "" &&
        first!.alternatives === finding.alternatives &&
        asideOf(first!.rule) === null &&
        asideOf(finding.rule) === null,
    );
    if (row) row.push(finding);
    else rows.push([finding]);
  }
  return rows;
}

interface ChoicesProps {
  /** The best first. */
  choices: readonly FindingItem[];
  scale: Scale;
  onOpen: (id: string) => void;
  /** They are those next to the one that is open. */
  instead?: boolean;
}

function Choices({ choices, scale, onOpen, instead = false }: ChoicesProps) {
  const best = choices[0]!;
  return (
    <div class="finding-line finding-choices" data-testid={`finding-choices-${best.rule}`}>
      <SeverityBadge severity={best.severity} />
      <span class="finding-line-title">
        {instead ? "Instead" : best.alternatives}:{" "}
        {choices.map((finding, index) => (
          <>
            {index > 0 && ", "}
            <button
              type="button"
              class="link"
              key={finding.id}
              aria-expanded={false}
              title={finding.title}
              data-testid={`finding-line-${finding.rule}`}
              onClick={() => onOpen(finding.id)}
            >
              {finding.choice} {finding.saving ? `saves ${formatNs(finding.saving.expected_ns)}` : "(unknown)"}
            </button>
          </>
        ))}
      </span>
      <span class="finding-line-bar">{best.saving && <SavingLine saving={best.saving} scale={scale} />}</span>
      {best.saving && <span class="finding-line-saving num">up to {Math.round(best.saving.percent)} %</span>}
    </div>
  );
}

interface FindingProps {
  finding: FindingItem;
  rule: AdvicePage["rules"][number] | undefined;
  /** Its place in the list, from 1. */
  number: number;
  scale: Scale;
  entries: RunEntry[];
  open: boolean;
  onToggle: () => void;
  onSetAside: (aside: Aside) => void;
}

function Finding({ finding, rule, number, scale, entries, open, onToggle, onSetAside }: FindingProps) {
  const row = useRef<HTMLButtonElement>(null);
  /** Whether it was open before: the focus follows from the row to the card and back. */
  const before = useRef(open);
  useEffect(() => {
    if (open) document.getElementById(findingElementId(finding.id))?.focus();
    else if (before.current) row.current?.focus();
    before.current = open;
  }, [open, finding.id]);
  if (open) {
    return (
      <FindingCard
        finding={finding}
        rule={rule}
        number={number}
        scale={scale}
        entries={entries}
        open
        onToggle={onToggle}
        onSetAside={onSetAside}
      />
    );
  }
  const { saving } = finding;
  return (
    <button
      ref={row}
      type="button"
      class="finding-line"
      aria-expanded={false}
      data-testid={`finding-line-${finding.rule}`}
      onClick={onToggle}
    >
      <SeverityBadge severity={finding.severity} />
      <span class="finding-line-title">{finding.title}</span>
      <span class="finding-line-bar">{saving && <SavingLine saving={saving} scale={scale} />}</span>
      {saving ? (
        <span
          class="finding-line-saving num"
          title={`between ${formatNs(saving.low_ns)} and ${formatNs(saving.high_ns)} of each step without the profiler`}
        >
          saves {formatNs(saving.expected_ns)} ({Math.round(saving.percent ?? 0)} %)
        </span>
      ) : (
        <span class="finding-line-saving missing" title="Its saving is unknown">
          unknown
        </span>
      )}
      <span class="finding-line-open muted" aria-hidden="true">
        ▸
      </span>
    </button>
  );
}
