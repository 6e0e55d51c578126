/** What a page has besides: drawn only once it is opened, and left as it was from run to run. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface MoreProps {
  title: string;
  testId: string;
  /** Outlives the page. */
  open: Signal<boolean>;
  children: () => ComponentChildren;
}

export function More({ title, testId, open, children }: MoreProps) {
  return (
    <details
      class="more"
      data-testid={testId}
      open={open.value}
      onToggle={(event) => {
        open.value = (event.currentTarget as HTMLDetailsElement).open;
      }}
    >
      <summary>{title}</summary>
      {open.value && children()}
    </details>
  );
}
