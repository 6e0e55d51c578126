/**
 * Run, session, rank and cycle; those with a single choice stay hidden, except the run. A few are a select; many runs a list to
 * search, many ranks a grid.
 */
import { useMemo } from "preact/hooks";
import type { RunEntry } from "../../api/types";
import { describeEntry, resolveChoice } from "../../state/profileChoice";
import { RankPicker } from "./RankPicker";
import { rankItems } from "./ranks";
import { RunPicker } from "./RunPicker";
import { NO_PROFILE, type ProfileChoice } from "../../state/profile";

interface ProfilePickerProps {
  entries: RunEntry[];
  choice: ProfileChoice;
  label: string;
  /** Prefix of the test ids; "" gives `run-picker`, `session-picker` and so on. */
  testId?: string;
  onChange: (choice: ProfileChoice) => void;
}

/** More than a select shows at once. */
const MANY_RUNS = 12;
const MANY_RANKS = 8;

/** The choice that follows the training: the newest session, its last cycle. */
const LATEST = "";

export function ProfilePicker({ entries, choice, label, testId = "", onChange }: ProfilePickerProps) {
  const { run, session, rank, cycle } = choice;
  const resolved = useMemo(
    () => resolveChoice(entries, { ...NO_PROFILE, run, session, rank, cycle }),
    [entries, run, session, rank, cycle],
  );
  if (!resolved) return null;
  const prefix = testId ? `${testId}-` : "";
  const runs = resolved.runs.includes(resolved.run) ? resolved.runs : [resolved.run, ...resolved.runs];
  const base: ProfileChoice = {
    run: resolved.run,
    session: choice.session,
    rank: choice.rank,
    cycle: choice.cycle,
    keyNode: choice.keyNode,
  };
  const pickRun = (run: string): void => onChange({ ...NO_PROFILE, run });
  const pickRank = (rank: number): void => onChange({ ...base, rank, cycle: null });
  return (
    <div class="pickers">
      {runs.length > MANY_RUNS ? (
        <RunPicker
          entries={entries}
          run={resolved.run}
          label={label}
          testId={`${prefix}run-picker`}
          onChange={pickRun}
        />
      ) : (
        <Picker
          label={label}
          name={`${prefix}run-picker`}
          wide
          value={resolved.run}
          options={runs}
          text={(run) => runLabel(run, entries)}
          onChange={pickRun}
        />
      )}
      {resolved.sessions.length > 1 && (
        <Picker
          label="Session"
          name={`${prefix}session-picker`}
          value={choice.session ?? LATEST}
          options={[LATEST, ...resolved.sessions]}
          text={(session) =>
            session === LATEST
              ? `latest (${choice.session === null ? resolved.session : newestSessionOf(entries, choice)})`
              : session
          }
          onChange={(session) => onChange({ ...NO_PROFILE, run: resolved.run, session: session || null })}
        />
      )}
      {resolved.ranks.length > MANY_RANKS ? (
        <RankPicker
          items={rankItems(entries, resolved.run, resolved.session)}
          rank={resolved.rank}
          testId={`${prefix}rank-picker`}
          onChange={pickRank}
        />
      ) : (
        resolved.ranks.length > 1 && (
          <Picker
            label="Rank"
            name={`${prefix}rank-picker`}
            value={String(resolved.rank ?? "")}
            options={resolved.ranks.map(String)}
            onChange={(rank) => pickRank(Number(rank))}
          />
        )
      )}
      {resolved.cycles.length > 1 && (
        <Picker
          label="Cycle"
          name={`${prefix}cycle-picker`}
          value={choice.cycle === null ? LATEST : String(choice.cycle)}
          options={[LATEST, ...resolved.cycles.map(String)]}
          text={(cycle) => (cycle === LATEST ? `latest (${resolved.cycles[resolved.cycles.length - 1]})` : cycle)}
          onChange={(cycle) => onChange({ ...base, cycle: cycle === LATEST ? null : Number(cycle) })}
        />
      )}
    </div>
  );
}

const newestSessionOf = (entries: readonly RunEntry[], choice: ProfileChoice): string | null =>
  resolveChoice(entries, { ...choice, session: null })?.session ?? null;

function runLabel(run: string, entries: readonly RunEntry[]): string {
  const entry = entries.find((candidate) => candidate.run === run);
  if (!entry) return `${run} (not in this logdir)`;
  const facts = describeEntry(entry, entries);
  return facts ? `${run} (${facts})` : run;
}

interface PickerProps {
  label: string;
  name: string;
  value: string;
  options: string[];
  text?: (option: string) => string;
  wide?: boolean;
  onChange: (value: string) => void;
}

function Picker({ label, name, value, options, text = (option) => option, wide = false, onChange }: PickerProps) {
  return (
    <label class={`picker ${wide ? "picker-wide" : ""}`}>
      <span>{label}</span>
      <select
        data-testid={name}
        value={value}
        title={text(value)}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option} value={option}>
            {text(option)}
          </option>
        ))}
      </select>
    </label>
  );
}
