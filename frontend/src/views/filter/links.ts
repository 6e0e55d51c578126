/** A selected op, op type, kernel or module in; the pages that have more of it out, and what is chosen there. Pure. */
import type { Target } from "../../state/navigate";
import type { Page } from "../../state/pages";
import type { Assignment } from "../../state/param";
import { filterParam, kernelParam, moduleParam, opParam, opTypeParam } from "../../state/sharedParams";
import type { Subject } from "../../state/subject";
import { findingParam, severitiesParam } from "../advice/params";
import { eventParam } from "../timeline/params";

export interface RelatedLink extends Target {
  label: string;
}

export function linksOf(subject: Subject): RelatedLink[] {
  const { kind, id } = subject;
  const link = (page: Page, label: string, filter: Subject | null, more: Assignment[]): RelatedLink => ({
    page,
    label,
    changes: [filterParam.to(filter), ...more],
  });
  const filtered = (page: Page, label: string, ...more: Assignment[]) => link(page, label, subject, more);
  const selected = (page: Page, label: string, ...more: Assignment[]) => link(page, label, null, more);
  const own = (wanted: Subject["kind"]): string | null => (kind === wanted ? id : null);
  return [
    ...(own("op_type") ? [selected("op_types", "Op type", opTypeParam.to(id))] : []),
    (own("op") ? selected : filtered)("ops", own("op") ? "Op" : "Ops", opParam.to(own("op"))),
    (own("kernel") ? selected : filtered)(
      "kernels",
      own("kernel") ? "Kernel" : "Kernels",
      kernelParam.to(own("kernel")),
    ),
    (own("module") ? selected : filtered)(
      "modules",
      kind === "kernel" || kind === "op_type" ? "Modules" : "Module",
      moduleParam.to(own("module")),
    ),
    filtered("advice", "Findings", findingParam.to(null), severitiesParam.to([])),
    filtered("tensor_cores", "Tensor Cores"),
    filtered("roofline", "Roofline"),
    filtered("launches", "Launches"),
    filtered("memory", "Memory"),
    // Where a module runs stands on the timeline by itself.
    ...(kind === "module"
      ? []
      : [
          selected(
            "timeline",
            "Timeline",
            opParam.to(own("op")),
            opTypeParam.to(own("op_type")),
            kernelParam.to(own("kernel")),
            eventParam.to(null),
          ),
        ]),
  ];
}
