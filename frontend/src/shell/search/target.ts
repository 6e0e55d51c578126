/** A hit in; the change of state that shows it out, and the measure that should have the focus there. Pure. */
import { METRICS } from "../../format/metrics";
import type { Page } from "../../state/pages";
import { NO_PROFILE, type ViewState } from "../../state/viewState";
import type { Hit } from "./hits";

export interface Target {
  change: Partial<ViewState> & { page: Page };
  term: string | null;
}

export function targetOf(hit: Pick<Hit, "kind" | "id">, state: ViewState): Target {
  const { id } = hit;
  const to = (change: Target["change"], term: string | null = null): Target => ({ change, term });
  switch (hit.kind) {
    case "page":
      return to({ page: id as Page });
    case "op":
      return to({ page: "ops", op: id, opModule: null });
    case "module":
      return to({ page: "modules", module: id });
    case "kernel":
      return to({ page: "kernels", kernel: id });
    case "rule":
      return to({ page: "advice", finding: id, severities: [] });
    case "report":
      return to({ page: "reports", report: id });
    case "run":
      // The pages of all runs show no single one.
      return to({
        page: state.page === "compare" || state.page === "runs" ? "overview" : state.page,
        profile: { ...NO_PROFILE, run: id },
        range: null,
        op: null,
        kernel: null,
        finding: null,
        device: null,
      });
    case "metric":
      return to({ page: METRICS.find(({ key }) => key === id)?.page ?? state.page }, id);
  }
}
