/** A `<dialog>` that is modal as long as it is drawn, from before its first painting: a key pressed at once is its own. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function useModal(): RefObject<HTMLDialogElement> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal?.();
    return () => element?.close?.();
  }, []);
  return dialog;
}
