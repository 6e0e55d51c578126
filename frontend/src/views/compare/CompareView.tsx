/** Picks the two runs and asks for their comparison. */
import { compareQuery, profileQuery } from "../../api/queries";
import type { RunEntry, SelectedRange } from "../../api/types";
import { useFile, useResource } from "../../api/useResource";
import { KeyNodePicker } from "../../components/KeyNodePicker";
import { EmptyMessage } from "../../components/Message";
import { RangeFields } from "../../components/RangePicker";
import { ResourceView } from "../../components/ResourceView";
import { TrustLine } from "../../components/TrustLine";
import { ProfilePicker } from "../../shell/ProfilePicker";
import { defaultPair } from "../../state/profileChoice";
import { useView } from "../../state/store";
import type { CompareChoice } from "../../state/viewState";
import { ComparePage } from "./ComparePage";

/** Another pair has other ops; a bar of the same name stays. */
const TOP = { pairModule: null, pair: null };

export function CompareView({ entries }: { entries: RunEntry[] }) {
  const { state, set } = useView();
  const inFile = useFile() !== null;
  const pair = defaultPair(entries, state.profile.run);
  const a: CompareChoice = { ...state.a, run: state.a.run ?? pair?.a ?? state.profile.run };
  const b: CompareChoice = { ...state.b, run: state.b.run ?? pair?.b ?? null };
  const key = `${a.run} ${a.session} ${a.rank} ${a.cycle} ${b.run} ${b.session} ${b.rank} ${b.cycle}`;
  const query = a.run !== null && b.run !== null ? compareQuery(a, b) : null;
  const resource = useResource("compare", query, key);
  const shown = resource.data;
  const cut = a.keyNode !== null || b.keyNode !== null;
  return (
    <>
      <div class="compare-pickers">
        <div class="compare-side">
          <ProfilePicker entries={entries} choice={a} label="Base" testId="compare-base" onChange={(choice) => set({ a: { ...choice, range: null }, b, ...TOP })} />
          {shown && (
            <Iterations side="base" label="Base iterations" range={shown.a.range} choice={a} onChange={(change) => set({ a: { ...a, ...change }, b })} />
          )}
        </div>
        <button type="button" class="button" data-testid="compare-swap" aria-label="Swap base and candidate" title="Swap base and candidate" onClick={() => set({ a: b, b: a, ...TOP })}>
          ⇄
        </button>
        <div class="compare-side">
          <ProfilePicker entries={entries} choice={b} label="Candidate" testId="compare-candidate" onChange={(choice) => set({ a, b: { ...choice, range: null }, ...TOP })} />
          {shown && (
            <Iterations side="candidate" label="Candidate iterations" range={shown.b.range} choice={b} onChange={(change) => set({ a, b: { ...b, ...change } })} />
          )}
        </div>
      </div>
      {query !== null && (
        <div class="compare-trust">
          <TrustLine of="Base" query={profileQuery(a, a.range)} />
          <TrustLine of="Candidate" query={profileQuery(b, b.range)} />
        </div>
      )}
      {query === null ? (
        <EmptyMessage>
          {inFile
            ? "Comparing takes two runs, and this file holds one: tb-dlprof export makes a file of both, with their comparison."
            : "Comparing takes two runs. Record a second one, with automatic mixed precision for example, into a directory beside the first and press Refresh."}
        </EmptyMessage>
      ) : (
        <ResourceView resource={resource} remedy={cut && <BothBack onClick={() => set({ a: { ...a, keyNode: null, range: null }, b: { ...b, keyNode: null, range: null } })} />}>
          {(data) => <ComparePage data={data} query={query} />}
        </ResourceView>
      )}
    </>
  );
}

interface IterationsProps {
  side: string;
  label: string;
  range: SelectedRange;
  choice: CompareChoice;
  onChange: (change: Partial<CompareChoice>) => void;
}

/** Which iterations of one side are compared, and what tells them apart. */
function Iterations({ side, label, range, choice, onChange }: IterationsProps) {
  return (
    <span class="page-iterations">
      <RangeFields range={range} label={label} onChange={(next) => onChange({ range: next })} />
      <KeyNodePicker range={range} choice={choice} label={label} testId={`compare-${side}-key-node`} onChange={(keyNode) => onChange({ keyNode, range: null })} />
    </span>
  );
}

function BothBack({ onClick }: { onClick: () => void }) {
  return (
    <p>
      <button type="button" class="button" data-testid="key-node-back" onClick={onClick}>
        Back to the recorded steps of both runs
      </button>
    </p>
  );
}
