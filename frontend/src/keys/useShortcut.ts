/** A component claims a key for as long as it is there. */
import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { Shortcuts } from "./shortcuts";

/** Without a provider (a component on its own, in a test) a claimed key has no effect. */
export const ShortcutContext = createContext(new Shortcuts());

/** `run` null: not now. */
export function useShortcut(keys: string, label: string, group: string, run: (() => void) | null): void {
  const shortcuts = useContext(ShortcutContext);
  const latest = useRef(run);
  latest.current = run;
  const active = run !== null;
  useEffect(
    () => (active ? shortcuts.claim({ keys, label, group, run: () => latest.current?.() }) : undefined),
    [shortcuts, keys, label, group, active],
  );
}
