/** The names of the pages, in the order of the navigation. What each is stands in `shell/routes.tsx`. */
import type { RunPage } from "../api/types";

export const PAGES = [
  "overview",
  "ops",
  "op_types",
  "modules",
  "kernels",
  "launches",
  "timeline",
  "tensor_cores",
  "roofline",
  "compiled",
  "memory",
  "plan",
  "energy",
  "advice",
  "loader",
  "tried",
  "reports",
  "compare",
  "runs",
  "distributed",
] as const;

export type Page = (typeof PAGES)[number];

/**
 * What Python calls a page of a run is one here, but for the trust line, which every page shows. A page that one side has and the other
 * has not fails the type check.
 */
type Unknown =
  | Exclude<RunPage, Page | "trust">
  | Exclude<Page, RunPage | "reports" | "compare" | "runs" | "distributed">;
const AGREES: [Unknown] extends [never] ? true : Unknown = true;
void AGREES;

export function isPage(text: string): text is Page {
  return (PAGES as readonly string[]).includes(text);
}
