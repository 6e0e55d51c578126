/**
 * Key presses in this page, and in TensorBoard's around it while this page is the one that is shown there: a search is possible
 * right after a click on TensorBoard's tab.
 */
import { tensorBoardWindow } from "../state/tensorboard";
import { isTyping } from "../state/typing";
import type { Shortcuts } from "./shortcuts";

const isShown = (): boolean =>
  document.documentElement.clientHeight > 0 && (window.frameElement as HTMLElement | null)?.offsetParent !== null;

export function listenForKeys(shortcuts: Shortcuts): () => void {
  const press = (event: KeyboardEvent): void => {
    // A dialog has the keys for itself.
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const found = shortcuts.press(event, event.timeStamp);
    if (!found) return;
    event.preventDefault();
    found.run();
  };
  const around = tensorBoardWindow()?.document;
  const pressAround = (event: KeyboardEvent): void => {
    if (!isShown() || isTyping(event.target) || event.key === "Escape") return;
    press(event);
    if (event.defaultPrevented) window.focus();
  };
  document.addEventListener("keydown", press);
  around?.addEventListener("keydown", pressAround);
  return () => {
    document.removeEventListener("keydown", press);
    around?.removeEventListener("keydown", pressAround);
  };
}
