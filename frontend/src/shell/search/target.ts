/** A hit in; the change of state that shows it out, and the measure that should have the focus there. Pure. */
import { METRICS } from "../../format/metrics";
import type { Page } from "../../state/pages";
import { ANOTHER_RUN, NO_PROFILE, type ViewState } from "../../state/viewState";
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
      return to({ page: "ops", op: id, about: null });
    case "module":
      return to({ page: "modules", module: id, about: null });
    case "kernel":
      return to({ page: "kernels", kernel: id, about: null });
    case "rule":
      return to({ page: "advice", finding: id, severities: [], about: null });
    case "report":
      return to({ page: "reports", report: id });
    case "run":
      // The pages of all runs show no single one.
      return to({
        page: state.page === "compare" || state.page === "runs" ? "overview" : state.page,
        ...ANOTHER_RUN,
        profile: { ...NO_PROFILE, run: id },
      });
    case "metric":
      return to({ page: METRICS.find(({ key }) => key === id)?.page ?? state.page }, id);
  }
}
