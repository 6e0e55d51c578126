/** Label and value pairs, as a definition list. */
import type { ComponentChildren } from "preact";

export function Facts({ rows }: { rows: readonly (readonly [label: ComponentChildren, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([label, value], index) => (
        <div key={index}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
