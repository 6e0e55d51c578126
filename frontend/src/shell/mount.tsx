/** Puts the style sheet and the page into the document. */
import { render } from "preact";
import type { Source } from "../api/client";
import advice from "../styles/advice.css?inline";
import base from "../styles/base.css?inline";
import compare from "../styles/compare.css?inline";
import components from "../styles/components.css?inline";
import forecast from "../styles/forecast.css?inline";
import launches from "../styles/launches.css?inline";
import memory from "../styles/memory.css?inline";
import modules from "../styles/modules.css?inline";
import pages from "../styles/pages.css?inline";
import pickers from "../styles/pickers.css?inline";
import precision from "../styles/precision.css?inline";
import reports from "../styles/reports.css?inline";
import runs from "../styles/runs.css?inline";
import table from "../styles/table.css?inline";
import shell from "../styles/shell.css?inline";
import takeaway from "../styles/takeaway.css?inline";
import tensorCores from "../styles/tensor_cores.css?inline";
import timeline from "../styles/timeline.css?inline";
import trust from "../styles/trust.css?inline";
import theme from "../styles/theme.css?inline";
import { App } from "./App";

/** `answers` come from the routes in a folder, or from an exported file. */
export function mount(parent: HTMLElement, answers: Source | URL): void {
  // TensorBoard's content security policy allows inline styles and no other host.
  const style = document.createElement("style");
  style.textContent = [theme, base, components, table, takeaway, pages, trust, advice, modules, compare, forecast, memory, launches, tensorCores, precision, reports, runs, shell, pickers, timeline].join("\n");
  document.head.append(style);
  document.documentElement.lang = "en";
  document.title = answers instanceof URL ? "DLProf" : (answers.file?.title ?? "DLProf");
  const root = document.createElement("div");
  root.id = "dlprof";
  parent.append(root);
  render(<App base={answers} />, root);
}
