/** In the place of a finding that was just set aside: what happened, and the way back, which takes the focus. */
import { useEffect, useRef } from "preact/hooks";
import type { Aside } from "./setAside";

export function Notice({ finding, aside, onUndo }: { finding: { title: string }; aside: Aside; onUndo: () => void }) {
  const undo = useRef<HTMLButtonElement>(null);
  useEffect(() => undo.current?.focus({ preventScroll: true }), []);
  return (
    <p class="finding-notice" role="status" data-testid="finding-notice">
      <span>
        {aside === "dismissed" ? "Dismissed" : "Marked as done"}: {finding.title}.
      </span>{" "}
      <button ref={undo} type="button" class="button button-small" onClick={onUndo}>
        Undo
      </button>
    </p>
  );
}
