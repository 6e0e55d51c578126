/** A hit in; the page that shows it and what is chosen there out, and the measure that should have the focus there. Pure. */
import { METRICS } from "../../format/metrics";
import type { Target } from "../../state/navigate";
import type { Page } from "../../state/pages";
import type { Assignment } from "../../state/param";
import { filterParam, kernelParam, moduleParam, opParam } from "../../state/sharedParams";
import { findingParam, severitiesParam } from "../../views/advice/params";
import { toReport } from "../../views/reports/params";
import type { Hit } from "./hits";

export interface HitTarget extends Target {
  /** Another run to show. */
  run: string | null;
  term: string | null;
}

/** `shown` is the page that is shown now. */
export function targetOf({ kind, id }: Pick<Hit, "kind" | "id">, shown: Page): HitTarget {
  const to = (page: Page, ...changes: Assignment[]): HitTarget => ({ page, changes, run: null, term: null });
  switch (kind) {
    case "page":
      return to(id as Page);
    case "op":
      return to("ops", opParam.to(id), filterParam.to(null));
    case "module":
      return to("modules", moduleParam.to(id), filterParam.to(null));
    case "kernel":
      return to("kernels", kernelParam.to(id), filterParam.to(null));
    case "rule":
      return to("advice", findingParam.to(id), severitiesParam.to([]), filterParam.to(null));
    case "report":
      return to("reports", ...toReport(id));
    case "run":
      // The pages of all runs show no single one.
      return { ...to(shown === "compare" || shown === "runs" ? "overview" : shown), run: id };
    case "metric":
      return { ...to(METRICS.find(({ key }) => key === id)?.page ?? shown), term: id };
  }
}
