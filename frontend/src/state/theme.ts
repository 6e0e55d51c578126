/** Light or dark, followed from TensorBoard (class `dark-mode` on its body), else from the system's preference. */
import { tensorBoardWindow } from "./tensorboard";

export type Theme = "light" | "dark";

/** Calls back with the theme, now and on each change; returns what stops it. */
export function followTheme(callback: (theme: Theme) => void): () => void {
  const body = tensorBoardWindow()?.document.body;
  if (body) {
    const read = (): void => callback(body.classList.contains("dark-mode") ? "dark" : "light");
    const observer = new MutationObserver(read);
    observer.observe(body, { attributes: true, attributeFilter: ["class"] });
    read();
    return () => observer.disconnect();
  }
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const read = (): void => callback(query.matches ? "dark" : "light");
  query.addEventListener("change", read);
  read();
  return () => query.removeEventListener("change", read);
}
