/** The Advice page: the findings by what they save, all together, what was set aside, and why the other rules are silent. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { AdvicePage as AdviceData, FindingItem, RunEntry } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, type PageFilter } from "../filter/usePageFilter";
import { number, text } from "../../components/export/columns";
import { TableFiles } from "../../components/export/TableFiles";
import type { Column } from "../../components/table/columns";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { useFile } from "../../api/useResource";
import { FindingCard, findingElementId } from "./FindingCard";
import { plainText } from "./Inline";
import { MixedPrecision } from "./MixedPrecision";
import { Notice } from "./Notice";
import { RuleList } from "./RuleList";
import { scaleOf } from "./SavingLine";
import { asideOf, setAside, type Aside } from "./setAside";
import { SetAsideList } from "./SetAsideList";
import { SeverityFilter } from "./SeverityFilter";
import { Together } from "./Together";
import { findingParam, severitiesParam } from "./params";
import { useParam } from "../../state/param";

const FILE_COLUMNS: Column<FindingItem>[] = [
  text("Rule", (finding) => finding.rule),
  text("Finding", (finding) => finding.title),
  text("Severity", (finding) => finding.severity),
  text("Confidence", (finding) => finding.confidence),
  number("Saving", "ns", (finding) => finding.saving?.expected_ns ?? null),
  number("Saving, from", "ns", (finding) => finding.saving?.low_ns ?? null, "", "saving_low_ns"),
  number("Saving, to", "ns", (finding) => finding.saving?.high_ns ?? null, "", "saving_high_ns"),
  number("Saving", "percent", (finding) => finding.saving?.percent ?? null),
  text("Seen", (finding) => plainText(finding.seen)),
  text("Change", (finding) => plainText(finding.change)),
  text("Code", (finding) => finding.code),
];

export function AdvicePage({ data, entries }: { data: AdviceData; entries: RunEntry[] }) {
  /** What the user opened or closed; else only the card that the address names is open. */
  const [toggled, setToggled] = useState<Record<string, boolean>>({});
  /** The finding set aside last: the way back stands in its place until the next action. */
  const [last, setLast] = useState<string | null>(null);
  /** A finding whose card takes the focus as soon as it is there: its button is gone. */
  const focusNext = useRef<string | null>(null);

  const named = useParam(findingParam);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another run's finding takes the focus; a finding that was set aside, which changes the data, does not.
  useEffect(() => {
    if (named === null) return;
    // The search names a rule; the finding of a rule has its name where there is one.
    const id = data.findings.find((finding) => finding.id === named || finding.rule === named)?.id ?? named;
    const card = document.getElementById(findingElementId(id));
    card?.scrollIntoView?.({ block: "start" });
    card?.focus();
  }, [named, data.ref.run]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was set aside last was so in the run before.
  useEffect(() => setLast(null), [data.ref.run]);
  useEffect(() => {
    if (focusNext.current === null) return;
    document.getElementById(findingElementId(focusNext.current))?.focus();
    focusNext.current = null;
  });

  const withAside = data.findings.map((finding) => ({ finding, aside: asideOf(finding.rule) }));
  const open = withAside.filter(({ aside }) => aside === null).map(({ finding }) => finding);
  const filter = usePageFilter();
  const shown = open.filter(
    (finding) => shows(severitiesParam.value, finding) && (filter.related === null || restsOn(finding, filter)),
  );
  const inPlace = data.findings.filter(
    (finding) => shown.includes(finding) || (finding.id === last && !open.includes(finding)),
  );
  // A file holds what all of them save together; what is left without some takes a server.
  const incomplete = useFile() !== null && open.length < data.findings.length;
  const combined = data.combined !== null && data.combined.findings > 1 && !incomplete ? data.combined : null;
  const scale = scaleOf([...data.findings.map((finding) => finding.saving), combined]);
  const isOpen = (finding: FindingItem): boolean =>
    toggled[finding.id] ?? (finding.id === named || finding.rule === named);
  const allOpen = shown.length > 0 && shown.every(isOpen);

  const putAside = (finding: FindingItem, aside: Aside): void => {
    setLast(finding.id);
    setAside(finding.rule, aside);
  };
  const restore = (finding: FindingItem): void => {
    setLast(null);
    focusNext.current = finding.id;
    setAside(finding.rule, null);
    if (!shows(severitiesParam.value, finding)) severitiesParam.value = [];
  };
  const listOf = (aside: Aside): FindingItem[] =>
    withAside.filter((one) => one.aside === aside).map(({ finding }) => finding);

  return (
    <>
      <PageHead title="All findings" headline={data.headline} range={data.range} />
      {combined && (
        <Together
          combined={combined}
          text={data.combined_text}
          scale={scale}
          partly={open.length < data.findings.length}
        />
      )}
      {incomplete && (
        <p class="muted" data-testid="together-not-in-file">
          What the open findings save together is not in this file: it takes the run itself, in TensorBoard.
        </p>
      )}
      {data.findings.length === 0 && (
        <EmptyMessage>No rule found anything to change. Below is what each of them looked at.</EmptyMessage>
      )}
      <FilterChip
        filter={filter}
        shown={shown.length}
        known={open.length}
        of="findings"
        none="No finding names it among what it rests on; each lists the few of most weight."
      />
      {open.length > 1 && (
        <div class="findings-bar">
          <SeverityFilter findings={open} />
          <span class="grow" />
          <TableFiles name="Findings" columns={FILE_COLUMNS} rows={shown} />
          <button
            type="button"
            class="link"
            data-testid="open-all"
            onClick={() => setToggled(Object.fromEntries(shown.map((finding) => [finding.id, !allOpen])))}
          >
            {allOpen ? "Close all" : "Open all"}
          </button>
        </div>
      )}
      <div class="findings" data-testid="findings">
        {inPlace.map((finding) =>
          shown.includes(finding) ? (
            <FindingCard
              key={finding.id}
              finding={finding}
              rule={data.rules.find((rule) => rule.rule === finding.rule)}
              number={data.findings.indexOf(finding) + 1}
              scale={scale}
              entries={entries}
              open={isOpen(finding)}
              onToggle={() => setToggled({ ...toggled, [finding.id]: !isOpen(finding) })}
              onSetAside={(aside) => putAside(finding, aside)}
            />
          ) : (
            <Notice
              key={`${finding.id} set aside`}
              finding={finding}
              aside={asideOf(finding.rule) ?? "dismissed"}
              onUndo={() => restore(finding)}
            />
          ),
        )}
        {data.findings.length > 0 && shown.length === 0 && (
          <p class="muted" data-testid="nothing-shown">
            {open.length === 0
              ? "All findings are dismissed or done."
              : filter.related
                ? "No open finding rests on it."
                : "No open finding is of that severity."}
          </p>
        )}
      </div>
      <SetAsideList aside="resolved" findings={listOf("resolved")} onRestore={restore} />
      <SetAsideList aside="dismissed" findings={listOf("dismissed")} onRestore={restore} />
      <MixedPrecision data={data.mixed_precision} />
      <RuleList rules={data.rules} named={named} />
    </>
  );
}

/** Whether the op, kernel or module, or what belongs to it, is among the rows behind a finding. */
const restsOn = (finding: FindingItem, { ops, kernels, modules }: PageFilter): boolean =>
  finding.evidence.some(({ page, id }) => (page === "kernels" ? kernels : page === "modules" ? modules : ops).has(id));

/** Whether the filter lets a finding through. */
const shows = (severities: readonly string[], finding: FindingItem): boolean =>
  severities.length === 0 || severities.includes(finding.severity);
