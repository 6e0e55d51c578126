/** Announces to screen readers what changed. */
import { useEffect, useState } from "preact/hooks";
import { onAnnounce } from "../state/pageFocus";

export function Announcer() {
  const [text, setText] = useState("");
  useEffect(() => onAnnounce(setText), []);
  return (
    <div class="hidden" role="status" aria-live="polite" data-testid="announcer">
      {text}
    </div>
  );
}
