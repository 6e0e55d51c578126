/**
 * A tree of times, or of sizes, as nested rectangles, the whole on top. A click or Enter selects one; the arrow keys walk the tree.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatNs } from "../../format/duration";
import { useIterations } from "../sums";
import { layOut, type Cell, type IcicleNode } from "./layout";

const ROW = 24;
/** Narrower rectangles (pixels) hold no text. */
const TEXT_FROM = 28;

interface IcicleProps {
  /** Drawn over the full width; null where there is nothing of it. */
  top: IcicleNode | null;
  /** The key of what is around `top`; null where nothing is. */
  above: string | null;
  selected: string | null;
  /** What the rectangles are, for screen readers: "Modules". */
  name: string;
  /** What one of them is, and several: for those too small to draw. */
  kinds: readonly [one: string, several: string];
  /** What to say where there is no time to draw. */
  empty: string;
  testId: string;
  /** How a width is written; by default as a time per iteration. */
  format?: (width: number, iterations: number) => string;
  /** What the width is. */
  by?: string;
  onSelect: (key: string) => void;
}

const perIteration = (ns: number, iterations: number): string => formatNs(ns / iterations);

export function Icicle(props: IcicleProps) {
  const { top, above, selected, name, kinds, empty, testId, format = perIteration, by = "time", onSelect } = props;
  const box = useRef<HTMLDivElement>(null);
  const pixels = useWidth(box);
  const iterations = useIterations();
  const cells = useMemo(() => layOut(top, pixels), [top, pixels]);
  const [focused, setFocused] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other cells have another first one.
  useEffect(() => setFocused(0), [cells]);

  const focus = (index: number): void => {
    setFocused(index);
    box.current?.querySelectorAll<HTMLElement>(".icicle-cell")[index]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const cell = cells[focused];
    if (!cell) return;
    if (event.key === "ArrowUp" && cell.level === 0) {
      if (above !== null) onSelect(above);
    } else {
      const next = step(cells, focused, event.key);
      if (next === null) return;
      focus(next);
    }
    event.preventDefault();
  };

  if (cells.length === 0) return <p class="missing">{empty}</p>;
  const levels = cells[cells.length - 1]!.level + 1;
  return (
    <div class="icicle-box" ref={box}>
      <div
        class="icicle"
        role="tree"
        aria-label={`${name} by ${by}; arrow keys walk the tree, Enter selects`}
        data-testid={testId}
        style={{ height: `${levels * ROW}px` }}
        onKeyDown={onKeyDown}
      >
        {cells.map((cell, index) => (
          <button
            type="button"
            key={cell.merged > 0 ? `${cell.key} ${cell.left}` : cell.key}
            role="treeitem"
            aria-level={cell.level + 1}
            aria-selected={cell.merged === 0 && cell.key === selected}
            aria-label={
              cell.merged > 0
                ? mergedText(cell, kinds, format(cell.ns, iterations))
                : `${shownName(cell)}, ${format(cell.ns, iterations)}`
            }
            class={`icicle-cell${cell.merged > 0 ? " icicle-merged" : cell.node.hatched ? " icicle-unknown" : ""}`}
            tabIndex={index === focused ? 0 : -1}
            data-tip={
              cell.merged > 0 ? mergedText(cell, kinds, format(cell.ns, iterations)) : cell.node.tip(iterations)
            }
            style={{
              top: `${cell.level * ROW}px`,
              left: `${100 * cell.left}%`,
              width: `${100 * cell.width}%`,
              "--cell": cell.merged > 0 ? "var(--c-other)" : cell.node.colour,
            }}
            onFocus={() => setFocused(index)}
            onClick={() => onSelect(cell.key)}
          >
            {cell.width * pixels >= TEXT_FROM && <span>{cell.merged > 0 ? "…" : drawnName(cell, pixels)}</span>}
          </button>
        ))}
      </div>
    </div>
  );
}

/** The outermost cell says in whole what all the others are of. */
function shownName({ level, node }: Cell): string {
  return level === 0 ? node.name : node.label;
}

/** Pixels of a character, on average, and of the room at both sides of a text. */
const CHARACTER = 7;
const SIDES = 10;

/** The same; where it has no room, a number without what it counts. */
function drawnName(cell: Cell, pixels: number): string {
  const name = shownName(cell);
  return CHARACTER * name.length + SIDES > cell.width * pixels ? name.replace(/^.*\.(?=\d+$)/, "") : name;
}

/** The cell that an arrow key leads to; null for other keys and at the edges. */
export function step(cells: readonly Cell[], from: number, key: string): number | null {
  const cell = cells[from]!;
  const found = (wanted: (other: Cell) => boolean): number | null => {
    const index = cells.findIndex(wanted);
    return index < 0 ? null : index;
  };
  const middle = cell.left + cell.width / 2;
  switch (key) {
    case "ArrowRight":
      return cells[from + 1]?.level === cell.level ? from + 1 : null;
    case "ArrowLeft":
      return cells[from - 1]?.level === cell.level ? from - 1 : null;
    case "ArrowDown":
      return found(
        (other) =>
          other.level === cell.level + 1 &&
          other.left + other.width / 2 >= cell.left &&
          other.left < cell.left + cell.width,
      );
    case "ArrowUp":
      return found(
        (other) => other.level === cell.level - 1 && other.left <= middle && middle <= other.left + other.width,
      );
    default:
      return null;
  }
}

const mergedText = (cell: Cell, [one, several]: readonly [string, string], width: string): string =>
  `${cell.merged} ${cell.merged === 1 ? one : several} too small to draw, ${width} together`;

/** Width of an element (pixels), kept up to date. */
function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(1000);
  useEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() => element.clientWidth > 0 && setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [box.current]);
  return width;
}
