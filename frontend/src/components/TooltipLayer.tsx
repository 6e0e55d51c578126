/**
 * One tooltip for the whole page: shows the `data-tip` of whatever is hovered or focused. It is fixed to the window, so that
 * scrolling boxes do not clip it. Escape hides it. On a touch screen a tap shows it, and a tap elsewhere hides it.
 */
import { useEffect, useRef, useState } from "preact/hooks";

interface Shown {
  text: string;
  left: number;
  top: number;
  below: boolean;
}

const ID = "dlprof-tooltip";
const WIDTH = 320;

export function TooltipLayer() {
  const [shown, setShown] = useState<Shown | null>(null);
  const described = useRef<Element | null>(null);

  useEffect(() => {
    const hide = (): void => {
      described.current?.removeAttribute("aria-describedby");
      described.current = null;
      setShown(null);
    };
    const show = (event: Event): void => {
      const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
      if (target === described.current) return;
      hide();
      const text = target?.getAttribute("data-tip");
      if (!target || !text) return;
      const box = target.getBoundingClientRect();
      const below = box.top < 120;
      const left = Math.max(8, Math.min(box.left, document.documentElement.clientWidth - WIDTH - 8));
      target.setAttribute("aria-describedby", ID);
      described.current = target;
      setShown({ text, left, top: below ? box.bottom + 6 : box.top - 6, below });
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") hide();
    };
    const onPointer = (event: PointerEvent): void => {
      // A tap focuses only what can be operated: what else has a definition is shown here.
      if (event.pointerType === "touch") show(event);
    };
    document.addEventListener("pointerup", onPointer);
    document.addEventListener("mouseover", show);
    document.addEventListener("focusin", show);
    document.addEventListener("focusout", hide);
    document.addEventListener("scroll", hide, true);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("pointerup", onPointer);
      document.removeEventListener("mouseover", show);
      document.removeEventListener("focusin", show);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("scroll", hide, true);
      document.removeEventListener("keydown", onKey);
    };
  }, []);

  return (
    <div
      id={ID}
      role="tooltip"
      // It describes what is hovered or focused, and is read there; it lies in no landmark.
      aria-hidden="true"
      class={`tooltip${shown?.below ? " tooltip-below" : ""}`}
      hidden={!shown}
      style={shown ? { left: `${shown.left}px`, top: `${shown.top}px`, maxWidth: `${WIDTH}px` } : undefined}
    >
      {shown?.text}
    </div>
  );
}
