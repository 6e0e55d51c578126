/** Keeps a table that begins in the upper part of the window as high as the window below it. */
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** Left below the table: the line that says what it leaves out, and the rim of the page. */
const BELOW = 56;
/** A table that would get less of the window is as high as the style sheet has it. */
const LEAST_SHARE = 0.5;

export function useFill(box: RefObject<HTMLElement>, wanted: boolean): void {
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !wanted || typeof ResizeObserver === "undefined") return undefined;
    const measure = (): void => {
      const top = element.getBoundingClientRect().top + window.scrollY;
      const room = Math.floor(window.innerHeight - top - BELOW);
      const height = room > LEAST_SHARE * window.innerHeight ? `${room}px` : "";
      if (element.style.maxHeight !== height) element.style.maxHeight = height;
    };
    measure();
    // Whatever comes or goes above the table changes the height of the page.
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [box, wanted]);
}
