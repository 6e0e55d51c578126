/** A button and the panel that it opens. Escape, a click elsewhere and a choice close it; the focus goes back to the button. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface PopoverProps {
  /** What stands on the button. */
  face: ComponentChildren;
  /** What it is called for those who hear the page. */
  label: string;
  testId: string;
  /** For tests and styles: what is chosen. */
  value: string;
  /** Drawn only while it is open; `close` gives the focus back. */
  children: (close: () => void) => ComponentChildren;
}

export function Popover({ face, label, testId, value, children }: PopoverProps) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return undefined;
    const elsewhere = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", elsewhere);
    document.addEventListener("focusin", elsewhere);
    return () => {
      document.removeEventListener("pointerdown", elsewhere);
      document.removeEventListener("focusin", elsewhere);
    };
  }, [open]);
  return (
    <div
      class="popover"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        close();
      }}
    >
      <button
        ref={button}
        type="button"
        class="popover-face"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label={label}
        data-testid={testId}
        data-value={value}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || open) return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        <span class="popover-text">{face}</span>
        <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div class="popover-panel" role="dialog" aria-label={label}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
