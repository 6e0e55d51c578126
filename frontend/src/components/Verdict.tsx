/** Yes, no or unknown: a shape and a word, never a colour alone. */
import type { Verdict as VerdictValue } from "../api/types";

const PATHS: Record<VerdictValue, string> = {
  yes: "M3 8.5l3.2 3.2L13 4.8",
  no: "M4.2 4.2l7.6 7.6M11.8 4.2l-7.6 7.6",
  unknown: "M5.6 6.1a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.8M8 12.6v.1",
};

export function Verdict({ value }: { value: VerdictValue }) {
  return (
    <span class={`verdict verdict-${value}`}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path
          d={PATHS[value]}
          fill="none"
          stroke="currentColor"
          stroke-width="2"
          stroke-linecap="round"
          stroke-linejoin="round"
        />
      </svg>
      {value}
    </span>
  );
}
