/** The pages, in the order of the navigation. */
export const PAGES = ["overview", "ops", "modules", "kernels", "launches", "tensor_cores", "roofline", "memory", "advice", "reports", "compare", "runs"] as const;

export type Page = (typeof PAGES)[number];

export const PAGE_LABELS: Record<Page, string> = {
  overview: "Overview",
  ops: "Ops",
  modules: "Modules",
  kernels: "Kernels",
  launches: "Launches",
  tensor_cores: "Tensor Cores",
  roofline: "Roofline",
  memory: "Memory",
  advice: "Advice",
  reports: "Reports",
  compare: "Compare",
  runs: "Runs",
};

export function isPage(text: string): text is Page {
  return (PAGES as readonly string[]).includes(text);
}
