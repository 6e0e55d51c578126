/** The pages, in the order of the navigation. */
export const PAGES = ["overview", "ops", "modules", "kernels", "launches", "timeline", "tensor_cores", "roofline", "memory", "advice", "reports", "compare", "runs"] as const;

export type Page = (typeof PAGES)[number];

export const PAGE_LABELS: Record<Page, string> = {
  overview: "Overview",
  ops: "Ops",
  modules: "Modules",
  kernels: "Kernels",
  launches: "Launches",
  timeline: "Timeline",
  tensor_cores: "Tensor Cores",
  roofline: "Roofline",
  memory: "Memory",
  advice: "Advice",
  reports: "Reports",
  compare: "Compare",
  runs: "Runs",
};

/** What each page is for: shown and found by the search. */
export const PAGE_QUESTIONS: Record<Page, string> = {
  overview: "Where does the time go?",
  ops: "Which ops take the time?",
  modules: "Which parts of the model take the time?",
  kernels: "Which kernels take the time?",
  launches: "Does the GPU wait for the CPU?",
  timeline: "What runs when, and where are the gaps?",
  tensor_cores: "Which work could use Tensor Cores and does not?",
  roofline: "How near do ops come to what the GPU can do?",
  memory: "What takes the memory?",
  advice: "What should be changed, and what does it save?",
  reports: "Tables to sort and save, DLProf's among them",
  compare: "Where do two runs differ?",
  runs: "All runs in one table, by model, as a sweep",
};

/** The key after g that leads to each page. */
export const PAGE_KEYS: Record<Page, string> = {
  overview: "o",
  ops: "p",
  modules: "m",
  kernels: "k",
  launches: "l",
  timeline: "t",
  tensor_cores: "c",
  roofline: "f",
  memory: "y",
  advice: "a",
  reports: "r",
  compare: "d",
  runs: "u",
};

export function isPage(text: string): text is Page {
  return (PAGES as readonly string[]).includes(text);
}
