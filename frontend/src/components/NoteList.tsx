/** Sentences about what a page's figures rest on, or why one is unknown. Nothing where there are none. */
interface NoteListProps {
  notes: readonly string[];
  testId?: string;
}

export function NoteList({ notes, testId }: NoteListProps) {
  if (notes.length === 0) return null;
  return (
    <div class="notes" data-testid={testId}>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  );
}
