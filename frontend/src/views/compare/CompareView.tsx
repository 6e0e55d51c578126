/** Picks the two runs and asks for their comparison. */
import { compareQuery } from "../../api/queries";
import type { RunEntry } from "../../api/types";
import { useResource } from "../../api/useResource";
import { KeyNodePicker } from "../../components/KeyNodePicker";
import { EmptyMessage } from "../../components/Message";
import { RangeFields } from "../../components/RangePicker";
import { ResourceView } from "../../components/ResourceView";
import { ProfilePicker } from "../../shell/ProfilePicker";
import { defaultPair } from "../../state/profileChoice";
import { useView } from "../../state/store";
import type { CompareChoice } from "../../state/viewState";
import { ComparePage } from "./ComparePage";

/** Another pair has other ops; a bar of the same name stays. */
const TOP = { pairModule: null, pair: null };

export function CompareView({ entries }: { entries: RunEntry[] }) {
  const { state, set } = useView();
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
          {shown && <RangeFields range={shown.a.range} label="Base iterations" onChange={(range) => set({ a: { ...a, range }, b })} />}
          {shown && (
            <KeyNodePicker range={shown.a.range} choice={a} label="Base iterations" testId="compare-base-key-node" onChange={(keyNode) => set({ a: { ...a, keyNode, range: null }, b })} />
          )}
        </div>
        <button type="button" class="button" data-testid="compare-swap" aria-label="Swap base and candidate" title="Swap base and candidate" onClick={() => set({ a: b, b: a, ...TOP })}>
          ⇄
        </button>
        <div class="compare-side">
          <ProfilePicker entries={entries} choice={b} label="Candidate" testId="compare-candidate" onChange={(choice) => set({ a, b: { ...choice, range: null }, ...TOP })} />
          {shown && <RangeFields range={shown.b.range} label="Candidate iterations" onChange={(range) => set({ a, b: { ...b, range } })} />}
          {shown && (
            <KeyNodePicker
              range={shown.b.range}
              choice={b}
              label="Candidate iterations"
              testId="compare-candidate-key-node"
              onChange={(keyNode) => set({ a, b: { ...b, keyNode, range: null } })}
            />
          )}
        </div>
      </div>
      {query === null ? (
        <EmptyMessage>
          Comparing takes two runs. Record a second one, with automatic mixed precision for example, into a directory beside the first and
          press Refresh.
        </EmptyMessage>
      ) : (
        <ResourceView resource={resource} remedy={cut && <BothBack onClick={() => set({ a: { ...a, keyNode: null, range: null }, b: { ...b, keyNode: null, range: null } })} />}>
          {(data) => <ComparePage data={data} query={query} />}
        </ResourceView>
      )}
    </>
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
