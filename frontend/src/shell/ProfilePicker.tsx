/** Run, session, rank and cycle as selects; those with a single choice stay hidden, except the run. */
import type { RunEntry } from "../api/types";
import { describeEntry, resolveChoice } from "../state/profileChoice";
import { NO_PROFILE, type ProfileChoice } from "../state/viewState";

interface ProfilePickerProps {
  entries: RunEntry[];
  choice: ProfileChoice;
  label: string;
  /** Prefix of the test ids; "" gives `run-picker`, `session-picker` and so on. */
  testId?: string;
  onChange: (choice: ProfileChoice) => void;
}

export function ProfilePicker({ entries, choice, label, testId = "", onChange }: ProfilePickerProps) {
  const resolved = resolveChoice(entries, choice);
  if (!resolved) return null;
  const prefix = testId ? `${testId}-` : "";
  const runs = resolved.runs.includes(resolved.run) ? resolved.runs : [resolved.run, ...resolved.runs];
  const runLabel = (run: string): string => {
    const entry = entries.find((candidate) => candidate.run === run);
    if (!entry) return `${run} (not in this logdir)`;
    const facts = describeEntry(entry, entries);
    return facts ? `${run} (${facts})` : run;
  };
  const base: ProfileChoice = { run: resolved.run, session: choice.session, rank: choice.rank, cycle: choice.cycle, keyNode: choice.keyNode };
  return (
    <div class="pickers">
      <Picker label={label} name={`${prefix}run-picker`} wide value={resolved.run} options={runs} text={runLabel} onChange={(run) => onChange({ ...NO_PROFILE, run })} />
      {resolved.sessions.length > 1 && (
        <Picker
          label="Session"
          name={`${prefix}session-picker`}
          value={resolved.session ?? ""}
          options={resolved.sessions}
          onChange={(session) => onChange({ ...NO_PROFILE, run: resolved.run, session })}
        />
      )}
      {resolved.ranks.length > 1 && (
        <Picker
          label="Rank"
          name={`${prefix}rank-picker`}
          value={String(resolved.rank ?? "")}
          options={resolved.ranks.map(String)}
          onChange={(rank) => onChange({ ...base, rank: Number(rank), cycle: null })}
        />
      )}
      {resolved.cycles.length > 1 && (
        <Picker
          label="Cycle"
          name={`${prefix}cycle-picker`}
          value={String(resolved.cycle ?? "")}
          options={resolved.cycles.map(String)}
          onChange={(cycle) => onChange({ ...base, cycle: Number(cycle) })}
        />
      )}
    </div>
  );
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
      <select data-testid={name} value={value} title={text(value)} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {text(option)}
          </option>
        ))}
      </select>
    </label>
  );
}
