/** A scroll box and a number of rows in; which rows to draw and the space before and after them out. All rows are one height. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** Below this every row is drawn: the browser's own search then finds all of them. */
export const VIRTUAL_ABOVE = 100;
export const ROW_HEIGHT = 33;
/** Rows drawn on each side beyond what is in sight. */
const OVERSCAN = 8;
/** The part drawn moves by this many rows at a time, so that not every pixel of a scroll draws again. */
const BLOCK = 4;

export interface VirtualRows {
  indices: number[];
  before: number;
  after: number;
  /** Brings row `index` into sight. */
  scrollTo: (index: number) => void;
}

interface Sight {
  /** The row at the upper edge, rounded down to whole blocks. */
  top: number;
  /** Rows that fit into the box. */
  size: number;
}

export function useVirtualRows(box: RefObject<HTMLElement>, count: number): VirtualRows {
  const [sight, setSight] = useState<Sight>({ top: 0, size: 20 });
  const enabled = count > VIRTUAL_ABOVE;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !enabled) return undefined;
    const look = (): void => {
      const top = Math.floor(element.scrollTop / ROW_HEIGHT / BLOCK) * BLOCK;
      const size = Math.ceil(element.clientHeight / ROW_HEIGHT) || 20;
      setSight((before) => (before.top === top && before.size === size ? before : { top, size }));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(look);
    observer?.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      observer?.disconnect();
    };
  }, [box, enabled]);

  const scrollTo = (index: number): void => {
    const element = box.current;
    if (!element) return;
    const top = index * ROW_HEIGHT;
    if (top < element.scrollTop || top > element.scrollTop + element.clientHeight - 3 * ROW_HEIGHT) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    }
  };
  const last = enabled ? Math.min(count, sight.top + sight.size + BLOCK + OVERSCAN) : count;
  // Fewer rows may be left than were scrolled over.
  const first = enabled ? Math.max(0, Math.min(sight.top - OVERSCAN, last - sight.size - OVERSCAN)) : 0;
  return {
    indices: Array.from({ length: last - first }, (_, place) => first + place),
    before: first * ROW_HEIGHT,
    after: (count - last) * ROW_HEIGHT,
    scrollTo,
  };
}
