/** How many of all have been read; nothing once all are. */
export function ProgressLine({ done, total, what }: { done: number; total: number; what: string }) {
  if (done >= total) return null;
  return (
    <p class="progress-line" role="status" data-testid="progress">
      <progress value={done} max={total} /> {done} of {total} {what} read
    </p>
  );
}
