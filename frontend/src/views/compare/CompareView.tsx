/** Picks the two runs and asks for their comparison. */
import { compareQuery, profileQuery } from "../../api/queries";
import type { RunEntry, SelectedRange } from "../../api/types";
import { useFile, useResource } from "../../api/useResource";
import { KeyNodePicker } from "../../features/KeyNodePicker";
import { EmptyMessage } from "../../components/Message";
import { RangeFields } from "../../features/RangePicker";
import { ResourceView } from "../../features/ResourceView";
import { TrustLine } from "../../features/TrustLine";
import { ProfilePicker } from "../../features/pickers/ProfilePicker";
import type { RangeChoice } from "../../state/profile";
import { ComparePage } from "./ComparePage";
import { assign } from "../../state/param";
import { baseParam, candidateParam, comparedSides, pairModuleParam, pairParam } from "./params";

/** Another pair has other ops; a bar of the same name stays. */
const TOP = [pairModuleParam.to(null), pairParam.to(null)];

export function CompareView({ entries }: { entries: RunEntry[] }) {
  const inFile = useFile() !== null;
  const { a, b } = comparedSides(entries);
  const key = `${a.run} ${a.session} ${a.rank} ${a.cycle} ${b.run} ${b.session} ${b.rank} ${b.cycle}`;
  const query = a.run !== null && b.run !== null ? compareQuery(a, b) : null;
  const resource = useResource("compare", query, key);
  const shown = resource.data;
  const cut = a.keyNode !== null || b.keyNode !== null;
  const bothWhole = (): void =>
    assign(baseParam.to({ ...a, keyNode: null, range: null }), candidateParam.to({ ...b, keyNode: null, range: null }));
  return (
    <>
      <div class="compare-pickers">
        <div class="compare-side">
          <ProfilePicker
            entries={entries}
            choice={a}
            label="Base"
            testId="compare-base"
            onChange={(choice) => assign(baseParam.to({ ...choice, range: null }), candidateParam.to(b), ...TOP)}
          />
          {shown && (
            <Iterations
              side="base"
              label="Base iterations"
              range={shown.a.range}
              choice={a}
              onChange={(change) => assign(baseParam.to({ ...a, ...change }), candidateParam.to(b))}
            />
          )}
        </div>
        <button
          type="button"
          class="button"
          data-testid="compare-swap"
          aria-label="Swap base and candidate"
          title="Swap base and candidate"
          onClick={() => assign(baseParam.to(b), candidateParam.to(a), ...TOP)}
        >
          ⇄
        </button>
        <div class="compare-side">
          <ProfilePicker
            entries={entries}
            choice={b}
            label="Candidate"
            testId="compare-candidate"
            onChange={(choice) => assign(baseParam.to(a), candidateParam.to({ ...choice, range: null }), ...TOP)}
          />
          {shown && (
            <Iterations
              side="candidate"
              label="Candidate iterations"
              range={shown.b.range}
              choice={b}
              onChange={(change) => assign(baseParam.to(a), candidateParam.to({ ...b, ...change }))}
            />
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
            : "Comparing takes two runs. Record a second one, with automatic mixed precision for example, into a directory next to the first and press Refresh."}
        </EmptyMessage>
      ) : (
        <ResourceView
          resource={resource}
          onWhole={cut || a.range !== null || b.range !== null ? bothWhole : null}
          remedy={cut && <BothBack onClick={bothWhole} />}
        >
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
  choice: RangeChoice;
  onChange: (change: Partial<RangeChoice>) => void;
}

/** Which iterations of one side are compared, and what tells them apart. */
function Iterations({ side, label, range, choice, onChange }: IterationsProps) {
  return (
    <span class="page-iterations">
      <RangeFields range={range} label={label} onChange={(next) => onChange({ range: next })} />
      <KeyNodePicker
        range={range}
        choice={choice}
        label={label}
        testId={`compare-${side}-key-node`}
        onChange={(keyNode) => onChange({ keyNode, range: null })}
      />
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
