/** Where a row behind a finding can be seen: the change of state that goes there, null for a page this one does not know. */
import type { EvidenceRow } from "../../api/types";
import { isPage } from "../../state/pages";
import type { ViewState } from "../../state/viewState";

export function evidenceTarget(row: EvidenceRow): Partial<ViewState> | null {
  if (!isPage(row.page)) return null;
  // The Tensor Cores page has no pane of its own: the op's details are on the Ops page.
  if ((row.page === "ops" || row.page === "tensor_cores") && row.id) return { page: "ops", op: row.id };
  if (row.page === "kernels" && row.id) return { page: "kernels", kernel: row.id };
  if (row.page === "modules" && row.id) return { page: "modules", module: row.id };
  // Without an id it names the page alone: what was selected there before has nothing to do with the finding.
  return { page: row.page, op: null, kernel: null, finding: null };
}
