/** A titled box of the page. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface CardProps {
  title: ComponentChildren;
  /** What stands at the right end of the title line. */
  actions?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
  testId?: string;
}

export function Card({ title, actions, children, testId, ...rest }: CardProps) {
  const id = useId();
  return (
    <section class={`card ${rest.class ?? ""}`} aria-labelledby={id} data-testid={testId}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {actions && <div class="card-actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
