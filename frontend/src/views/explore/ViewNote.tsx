/** Why the chosen view of a grouping is not there, in one line; nothing where it is. */
import type { Page } from "../../state/pages";
import { notPossible, workView } from "./workView";

export function ViewNote({ page, hasGpu }: { page: Page; hasGpu: boolean }) {
  const why = notPossible(page, workView(page), hasGpu);
  return why === null ? null : (
    <p class="muted work-note" data-testid="view-note">
      {why}
    </p>
  );
}
