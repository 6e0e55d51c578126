/** A few choices of which one holds, side by side. */
interface SwitchProps<Choice extends string> {
  label: string;
  value: Choice;
  choices: readonly (readonly [value: Choice, text: string])[];
  onChange: (value: Choice) => void;
  testId?: string;
}

export function Switch<Choice extends string>({ label, value, choices, onChange, testId }: SwitchProps<Choice>) {
  return (
    <span class="switch" role="group" aria-label={label} data-testid={testId}>
      {choices.map(([choice, text]) => (
        <button type="button" key={choice} aria-pressed={choice === value} onClick={() => onChange(choice)}>
          {text}
        </button>
      ))}
    </span>
  );
}
