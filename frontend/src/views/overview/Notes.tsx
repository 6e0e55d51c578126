/** What was repaired, lost or is not in the source. */
import type { NoteItem } from "../../api/types";
import { formatInteger } from "../../format/number";

export function Notes({ notes }: { notes: NoteItem[] }) {
  if (notes.length === 0) return null;
  return (
    <details class="notes" data-testid="notes" open={notes.length <= 3}>
      <summary>
        {notes.length} {notes.length === 1 ? "note" : "notes"} on this recording
      </summary>
      <ul>
        {notes.map((note, index) => (
          <li key={`${note.code} ${index}`}>
            {note.text}
            {note.count !== null && <span class="muted"> ({formatInteger(note.count)})</span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
