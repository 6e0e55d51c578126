/** The runs whose profiles cannot be read. */
import type { FailedRun } from "../../api/types";

export function Failed({ failed }: { failed: FailedRun[] }) {
  if (failed.length === 0) return null;
  return (
    <ul class="warnings" data-testid="runs-failed">
      {failed.map((one) => (
        <li key={one.run}>
          <strong>{one.run}</strong>: {one.why}
        </li>
      ))}
    </ul>
  );
}
