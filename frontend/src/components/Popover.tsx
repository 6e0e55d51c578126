/** A button and the panel that it opens. Escape, a click elsewhere and a choice close it; the focus goes back to the button. */
import type { ComponentChildren } from "preact";
import { usePopover } from "./usePopover";

interface PopoverProps {
  /** What stands on the button. */
  face: ComponentChildren;
  /** Its name for screen readers. */
  label: string;
  testId: string;
  /** For tests and styles: what is chosen. */
  value: string;
  /** Drawn only while it is open; `close` gives the focus back. */
  children: (close: () => void) => ComponentChildren;
}

export function Popover({ face, label, testId, value, children }: PopoverProps) {
  const { open, setOpen, close, box, onKeyDown } = usePopover<HTMLDivElement>(".popover-face", { byFocus: true });
  return (
    <div class="popover" ref={box} onKeyDown={onKeyDown}>
      <button
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
