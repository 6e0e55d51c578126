/** How much a finding matters: a word in a coloured box. */
export function SeverityBadge({ severity }: { severity: string }) {
  return (
    <span class={`severity severity-${["high", "medium", "low"].includes(severity) ? severity : "low"}`}>
      {severity}
    </span>
  );
}
