/**
 * Light or dark: followed from TensorBoard (class `dark-mode` on its body); as the address asks, where the page stands alone in a
 * notebook; else as the system prefers.
 */
import { signal } from "@preact/signals";
import { tensorBoardWindow } from "./tensorboard";

export type Theme = "light" | "dark";

/** The theme that is shown, for what is drawn rather than styled. */
export const themeSignal = signal<Theme>("light");

/** The theme that was picked on the page itself, for this tab; null follows the surroundings. */
let preferred: Theme | null = null;
const PREFERRED = "tb_dlprof.theme";
const followers = new Set<() => void>();

/** Takes this theme whatever the surroundings have. */
export function preferTheme(theme: Theme): void {
  preferred = theme;
  try {
    sessionStorage.setItem(PREFERRED, theme);
  } catch {
    // A page without storage forgets it with a reload.
  }
  for (const read of followers) read();
}

function storedPreference(): Theme | null {
  try {
    const stored = sessionStorage.getItem(PREFERRED);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null;
  }
}

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
  const asked = new URLSearchParams(window.location.search).get("theme");
  if (asked === "light" || asked === "dark") {
    callback(asked);
    return () => undefined;
  }
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const read = (): void => callback(preferred ?? storedPreference() ?? (query.matches ? "dark" : "light"));
  query.addEventListener("change", read);
  followers.add(read);
  read();
  return () => {
    query.removeEventListener("change", read);
    followers.delete(read);
  };
}
