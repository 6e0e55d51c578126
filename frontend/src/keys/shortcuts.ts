/** Keys that do something: who claims one, and which claim a key press means. Pure but for the timer of two-key shortcuts. */
import { isTyping } from "../state/typing";

export interface Shortcut {
  /** "/", "mod+k" (Ctrl or Cmd), "Escape", or two keys, one after the other: "g o". */
  keys: string;
  /** What it does, for the overlay; "" keeps it out of there. */
  label: string;
  group: string;
  run: () => void;
}

/** A second key counts if it comes within this time. */
const PAUSE_MS = 1500;

/** The name of a key press as shortcuts spell it, null for one that is the browser's or the system's business. */
export function nameOf(event: KeyboardEvent): string | null {
  // On many layouts [ and ] take AltGr, which some systems report as Ctrl and Alt.
  const composed = event.getModifierState?.("AltGraph") || (event.ctrlKey && event.altKey);
  if (!composed && (event.ctrlKey || event.metaKey)) return event.altKey ? null : `mod+${event.key.toLowerCase()}`;
  if (!composed && event.altKey) return null;
  return event.key;
}

export class Shortcuts {
  private readonly claimed: Shortcut[] = [];
  private first: { key: string; at: number } | null = null;

  /** The latest claim on a key has it. Returns what gives it back. */
  claim(shortcut: Shortcut): () => void {
    this.claimed.push(shortcut);
    return () => {
      const at = this.claimed.indexOf(shortcut);
      if (at >= 0) this.claimed.splice(at, 1);
    };
  }

  /** All that are claimed now, each key once, in the order in which they were claimed. */
  all(): Shortcut[] {
    return this.claimed.filter((shortcut) => this.find(shortcut.keys) === shortcut);
  }

  /** What a key press means; null for nothing, or for the first of two keys. */
  press(event: KeyboardEvent, now: number): Shortcut | null {
    const name = nameOf(event);
    if (name === null || name === "Shift" || name === "AltGraph") return null;
    if (isTyping(event.target) && !name.startsWith("mod+")) return null;
    const before = this.first !== null && now - this.first.at < PAUSE_MS ? this.first.key : null;
    this.first = null;
    const found = (before !== null ? this.find(`${before} ${name}`) : null) ?? this.find(name);
    if (!found && this.claimed.some(({ keys }) => keys.startsWith(`${name} `))) this.first = { key: name, at: now };
    return found;
  }

  private find(keys: string): Shortcut | null {
    for (let at = this.claimed.length - 1; at >= 0; at--) if (this.claimed[at]!.keys === keys) return this.claimed[at]!;
    return null;
  }
}
