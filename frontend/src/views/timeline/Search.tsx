/** Looks for events by a part of their name. Enter goes from one to the next, Shift+Enter back. */
import { useEffect, useState } from "preact/hooks";

interface SearchProps {
  text: string;
  onText: (text: string) => void;
  onStep: (step: 1 | -1) => void;
}

/** A pause in typing after which the search begins: a request for every letter would be needless. */
const WAIT_MS = 200;

export function Search({ text, onText, onStep }: SearchProps) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed starts the wait.
  useEffect(() => {
    if (typed === text) return undefined;
    const timer = setTimeout(() => onText(typed), WAIT_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      class="timeline-search"
      placeholder="Find an op, kernel, module …"
      aria-label="Find events by name; Enter goes to the next one"
      value={typed}
      data-testid="timeline-search"
      onInput={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
        if (event.key === "Escape") onText("");
      }}
    />
  );
}
