/** A scroll box and a number of rows in; which rows to draw and the space before and after them out. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useReducer } from "preact/hooks";

/** Below this every row is drawn: the browser's own search then finds all of them. */
export const VIRTUAL_ABOVE = 200;
export const ROW_HEIGHT = 33;
const OVERSCAN = 12;

export interface VirtualRows {
  indices: number[];
  before: number;
  after: number;
  /** Brings row `index` into sight. */
  scrollTo: (index: number) => void;
}

export function useVirtualRows(box: RefObject<HTMLElement>, count: number): VirtualRows {
  const [, redraw] = useReducer((ticks: number) => ticks + 1, 0);
  const enabled = count > VIRTUAL_ABOVE;
  const options = {
    count,
    enabled,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    initialRect: { width: 800, height: 600 },
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(undefined),
  };
  const virtualizer = useMemo(() => new Virtualizer<HTMLElement, HTMLElement>(options), []);
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());

  const scrollTo = (index: number): void => {
    const element = box.current;
    if (!element) return;
    const top = index * ROW_HEIGHT;
    if (top < element.scrollTop || top > element.scrollTop + element.clientHeight - 3 * ROW_HEIGHT) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    }
  };
  if (!enabled) return { indices: Array.from({ length: count }, (_, index) => index), before: 0, after: 0, scrollTo };
  const items = virtualizer.getVirtualItems();
  return {
    indices: items.map((item) => item.index),
    before: items[0]?.start ?? 0,
    after: virtualizer.getTotalSize() - (items[items.length - 1]?.end ?? 0),
    scrollTo,
  };
}
