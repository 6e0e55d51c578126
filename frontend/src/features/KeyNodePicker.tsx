/**
 * What separates iterations, and the ops that could do it instead (DLProf's key node). A disclosure next to the range of
 * iterations; where nothing marked the steps of a recording, a notice with the likeliest ops.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { KeyNodeCandidate, KeyNodesPage, SelectedRange } from "../api/types";
import { useFile, useResource } from "../api/useResource";
import { usePopover } from "../components/usePopover";
import { formatInteger } from "../format/number";
import { directionWords } from "../format/passes";
import { WHOLE_ONLY } from "./RangePicker";
import { assign } from "../state/param";
import { profileParam, rangeParam } from "../state/sharedParams";
import type { ProfileChoice } from "../state/profile";

interface KeyNodePickerProps {
  range: SelectedRange;
  choice: ProfileChoice;
  /** Null goes back to the steps that were recorded. */
  onChange: (keyNode: string | null) => void;
  /** Distinguishes two of them for screen readers. */
  label?: string;
  testId?: string;
}

const FOUND_BY: Record<string, string> = {
  profiler_step: "prof.step()",
  step_annotation: "step annotations",
  program_run: "program runs",
  xla_modules: "program runs",
  inference: "inferences",
  nvtx_ranges: "NVTX ranges",
  tensorrt_executions: "TensorRT executions",
  optimizer_step: "optimizer steps",
  none: "nothing",
};

/** More are found by searching. */
const MOST_SHOWN = 100;
const LIKELIEST = 3;

const namedAs = (choice: ProfileChoice) => ({
  run: choice.run,
  session: choice.session,
  rank: choice.rank,
  cycle: choice.cycle,
});
const keyOf = (choice: ProfileChoice): string => Object.values(namedAs(choice)).join(" ");

export function KeyNodePicker({
  range,
  choice,
  onChange,
  label = "Iterations",
  testId = "key-node",
}: KeyNodePickerProps) {
  const { open, setOpen, close, box, onKeyDown } = usePopover<HTMLDetailsElement>("summary");
  const by = choice.keyNode ?? FOUND_BY[range.found_by] ?? range.found_by;
  if (useFile() !== null) {
    return (
      <span class="muted small" tabIndex={0} data-tip={WHOLE_ONLY} data-testid={testId}>
        {label} by {by}
      </span>
    );
  }
  return (
    <details
      class="key-node"
      ref={box}
      open={open}
      data-testid={testId}
      onToggle={(event) => setOpen(event.currentTarget.open)}
      onKeyDown={onKeyDown}
    >
      <summary
        class={`button button-small ${choice.keyNode === null ? "" : "key-node-chosen"}`}
        aria-label={`${label} by ${by}; choose another op`}
        data-testid={`${testId}-summary`}
      >
        <span class="muted">{label} by</span> <span class="key-node-by">{by}</span>
      </summary>
      {open && (
        <Panel
          choice={choice}
          testId={testId}
          onPick={(keyNode) => {
            close();
            onChange(keyNode);
          }}
        />
      )}
    </details>
  );
}

interface PanelProps {
  choice: ProfileChoice;
  testId: string;
  onPick: (keyNode: string | null) => void;
}

/** Asks for the candidates as soon as it is opened. */
function Panel({ choice, ...rest }: PanelProps) {
  const { data, error, slow, retry } = useResource("key_nodes", namedAs(choice), keyOf(choice));
  return (
    <div class="key-node-panel" aria-busy={slow}>
      {error && (
        <p role="alert">
          {error.message}{" "}
          <button type="button" class="link" onClick={retry}>
            Try again
          </button>
        </p>
      )}
      {slow && <div class="skeleton skeleton-card" role="status" aria-label="Loading" />}
      {data && <Choices page={data} keyNode={choice.keyNode} {...rest} />}
    </div>
  );
}

type ChoicesProps = Omit<PanelProps, "choice"> & { page: KeyNodesPage; keyNode: string | null };

function Choices({ page, keyNode, testId, onPick }: ChoicesProps) {
  const [text, setText] = useState("");
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => search.current?.focus(), []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = page.rows.filter((row) =>
    words.every((word) => `${row.name} ${row.id} ${directionWords(row.direction)}`.toLowerCase().includes(word)),
  );
  const asRecorded =
    page.found_by === "none"
      ? "Nothing: the recording is one iteration"
      : `${FOUND_BY[page.found_by] ?? page.found_by}, as recorded`;
  return (
    <>
      <p class="muted small">
        A key node is an op that runs once in each iteration, best at its start. An iteration ends where the key node
        stops: N calls make N + 1.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") onPick(text.trim());
        }}
      >
        <input
          ref={search}
          type="search"
          value={text}
          placeholder="op, annotation or module"
          aria-label="Find an op; Enter takes the name as it stands"
          data-testid={`${testId}-search`}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      <ul>
        <li>
          <button
            type="button"
            class="key-node-choice"
            aria-pressed={keyNode === null}
            data-testid={`${testId}-recorded`}
            onClick={() => onPick(null)}
          >
            <span>{asRecorded}</span>
            <span class="muted">{page.found_by === "none" ? "" : `${formatInteger(page.iterations)} iterations`}</span>
          </button>
        </li>
        {found.slice(0, MOST_SHOWN).map((row) => (
          <li key={row.id}>
            <button
              type="button"
              class="key-node-choice"
              aria-pressed={keyNode === row.key_node}
              data-testid={`${testId}-choice`}
              title={row.id}
              onClick={() => onPick(row.key_node)}
            >
              <span>{row.name}</span>
              <span class="muted">{timesOf(row)}</span>
            </button>
          </li>
        ))}
      </ul>
      {found.length > MOST_SHOWN && (
        <p class="muted small">
          The first {MOST_SHOWN} of {formatInteger(found.length)}; search for others.
        </p>
      )}
      {found.length === 0 && (
        <p class="muted small">
          {text ? "No op that runs once a step has this name; Enter takes it as it stands." : "No op runs once a step."}
        </p>
      )}
    </>
  );
}

const timesOf = (row: KeyNodeCandidate): string =>
  `${row.direction ? `${row.direction}, ` : ""}${formatInteger(row.calls)} ${row.calls === 1 ? "call" : "calls"}`;

/** The range that a page adds up, cut by what; for the profile that the header has picked. */
export function ProfileKeyNode({ range }: { range: SelectedRange }) {
  return (
    <KeyNodePicker
      range={range}
      choice={profileParam.value}
      onChange={(keyNode) => assign(profileParam.to({ ...profileParam.value, keyNode }), rangeParam.to(null))}
    />
  );
}

/** For a recording whose steps nothing marked. */
export function NoSteps({ range }: { range: SelectedRange }) {
  const inFile = useFile() !== null;
  const { data } = useResource("key_nodes", inFile ? null : namedAs(profileParam.value), keyOf(profileParam.value));
  const pick = (keyNode: string): void =>
    assign(profileParam.to({ ...profileParam.value, keyNode }), rangeParam.to(null));
  return (
    <div class="warnings no-steps" data-testid="no-steps" role="note">
      <span>
        Nothing marks the steps of this recording, so all of it counts as one iteration.{" "}
        {inFile
          ? "In TensorBoard it can be cut where an op stops that runs once in each step."
          : "Cut it where an op stops that runs once in each step:"}
      </span>
      {data?.rows.slice(0, LIKELIEST).map((row) => (
        <button
          type="button"
          key={row.id}
          class="button button-small"
          data-testid="no-steps-choice"
          title={row.id}
          onClick={() => pick(row.key_node)}
        >
          {row.name} <span class="muted">({timesOf(row)})</span>
        </button>
      ))}
      {!inFile && <ProfileKeyNode range={range} />}
    </div>
  );
}

/** Below an error while a key node is chosen: another run may not have it. */
export function BackToSteps() {
  if (profileParam.value.keyNode === null) return null;
  return (
    <p>
      <button
        type="button"
        class="button"
        data-testid="key-node-back"
        onClick={() => assign(profileParam.to({ ...profileParam.value, keyNode: null }), rangeParam.to(null))}
      >
        Back to the recorded steps
      </button>
    </p>
  );
}
