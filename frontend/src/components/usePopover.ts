/**
 * Opens and closes a panel next to its button: a click elsewhere and, where wanted, the focus elsewhere close it; Escape and `close`
 * do as well and give the focus back to the button.
 */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface PopoverState<Box extends HTMLElement> {
  open: boolean;
  setOpen: (open: boolean) => void;
  /** Closes the panel; the focus goes back to the button. */
  close: () => void;
  /** Around button and panel. */
  box: RefObject<Box>;
  onKeyDown: (event: KeyboardEvent) => void;
}

/** `button` selects the button within the box. */
export function usePopover<Box extends HTMLElement>(button: string, { byFocus = false } = {}): PopoverState<Box> {
  const [open, setOpen] = useState(false);
  const box = useRef<Box>(null);
  useEffect(() => {
    if (!open) return undefined;
    const elsewhere = (event: Event): void => {
      // A click within the panel on what takes no focus gives it to what is around: it goes back to where it was.
      if (event instanceof FocusEvent && event.target instanceof Node && event.target.contains(box.current)) {
        if (event.relatedTarget instanceof HTMLElement) event.relatedTarget.focus();
        return;
      }
      if (!(event.target instanceof Node && box.current?.contains(event.target))) setOpen(false);
    };
    const events = byFocus ? ["pointerdown", "focusin"] : ["pointerdown"];
    for (const event of events) document.addEventListener(event, elsewhere);
    return () => {
      for (const event of events) document.removeEventListener(event, elsewhere);
    };
  }, [open, byFocus]);
  const close = (): void => {
    setOpen(false);
    box.current?.querySelector<HTMLElement>(button)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    close();
  };
  return { open, setOpen, close, box, onKeyDown };
}
