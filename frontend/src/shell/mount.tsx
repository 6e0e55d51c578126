/** Puts the style sheet and the page into the document. */
import { render } from "preact";
import type { Source } from "../api/source";
import styles from "../styles/index.css?inline";
import { App } from "./App";

/** `answers` come from the routes in a folder, or from an exported file. */
export function mount(parent: HTMLElement, answers: Source | URL): void {
  // TensorBoard's content security policy allows inline styles and no other host.
  const style = document.createElement("style");
  style.textContent = styles;
  document.head.append(style);
  document.documentElement.lang = "en";
  document.title = answers instanceof URL ? "DLProf" : (answers.file?.title ?? "DLProf");
  const root = document.createElement("div");
  root.id = "dlprof";
  parent.append(root);
  render(<App base={answers} />, root);
}
