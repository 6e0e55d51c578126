/** Where a row behind a finding can be seen: the page and what is chosen there, null for a page this one does not know. */
import type { EvidenceRow } from "../../api/types";
import type { Target } from "../../state/navigate";
import { isPage } from "../../state/pages";
import { kernelParam, moduleParam, opParam } from "../../state/sharedParams";
import { findingParam } from "./params";

export function evidenceTarget(row: EvidenceRow): Target | null {
  if (!isPage(row.page)) return null;
  // The Tensor Cores page has no pane of its own: the op's details are on the Ops page.
  if ((row.page === "ops" || row.page === "tensor_cores") && row.id)
    return { page: "ops", changes: [opParam.to(row.id)] };
  if (row.page === "kernels" && row.id) return { page: "kernels", changes: [kernelParam.to(row.id)] };
  if (row.page === "modules" && row.id) return { page: "modules", changes: [moduleParam.to(row.id)] };
  // Without an id it names the page alone: what was selected there before has nothing to do with the finding.
  return { page: row.page, changes: [opParam.to(null), kernelParam.to(null), findingParam.to(null)] };
}
