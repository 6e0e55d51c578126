/** What is selected in a table, next to it. Escape and the button close it; the focus goes back to the row that it was opened from. */
import type { ComponentChildren } from "preact";
import { useShortcut } from "../keys/useShortcut";

interface PaneProps {
  /** Of what it shows, such as "op". */
  of: string;
  testId: string;
  busy?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

export function Pane({ of, testId, busy = false, onClose, children }: PaneProps) {
  const close = (): void => {
    // The row stays where it is, only its mark goes; one that is scrolled out of a long table is not drawn.
    const row =
      document.querySelector<HTMLElement>("main tr[aria-current='true'] button.link") ??
      document.querySelector<HTMLElement>("main .table-box");
    onClose();
    row?.focus();
  };
  useShortcut("Escape", `Close the selected ${of}`, "Tables", close);
  return (
    <aside class="pane" aria-label={`Selected ${of}`} data-testid={testId} aria-busy={busy}>
      <button
        type="button"
        class="button button-small pane-close"
        onClick={close}
        aria-label={`Close the selected ${of}`}
      >
        ✕
      </button>
      {children}
    </aside>
  );
}
