/** A selected op, kernel or module in; the pages that have more of it out, and the change of state that shows it there. Pure. */
import type { Page } from "../../state/pages";
import type { Subject } from "../../state/subject";
import type { ViewState } from "../../state/viewState";

export interface RelatedLink {
  page: Page;
  label: string;
  change: Partial<ViewState>;
}

export function linksOf(subject: Subject): RelatedLink[] {
  const { kind, id } = subject;
  const filtered = (page: Page, label: string, more: Partial<ViewState> = {}): RelatedLink => ({ page, label, change: { page, about: subject, ...more } });
  const selected = (page: Page, label: string, more: Partial<ViewState>): RelatedLink => ({ page, label, change: { page, about: null, ...more } });
  return [
    kind === "op" ? selected("ops", "Op", { op: id }) : filtered("ops", "Ops", { op: null }),
    kind === "kernel" ? selected("kernels", "Kernel", { kernel: id }) : filtered("kernels", "Kernels", { kernel: null }),
    kind === "module" ? selected("modules", "Module", { module: id }) : filtered("modules", kind === "op" ? "Module" : "Modules", { module: null }),
    filtered("advice", "Findings", { finding: null, severities: [] }),
    filtered("tensor_cores", "Tensor Cores"),
    filtered("roofline", "Roofline"),
    filtered("launches", "Launches"),
    filtered("memory", "Memory"),
    ...(kind === "op" ? [selected("timeline", "Timeline", { op: id, kernel: null, event: null })] : []),
    ...(kind === "kernel" ? [selected("timeline", "Timeline", { kernel: id, op: null, event: null })] : []),
  ];
}
