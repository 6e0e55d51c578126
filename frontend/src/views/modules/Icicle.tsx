/**
 * The module tree as nested rectangles, the whole on top. A click or Enter selects a module and draws it over the full width;
 * the arrow keys walk the tree.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ModuleRow } from "../../api/types";
import { exactUnit, formatUnit } from "../../format/unit";
import { formatNs } from "../../format/duration";
import { perStep, unitPerStep, useIterations } from "../../components/sums";
import { NOTHING_ELIGIBLE, UNKNOWN } from "./IcicleLegend";
import { layOut, ownTimeOf, timeOf, type Cell, type Device, type Direction } from "./layout";
import { keyAbove, labelOf, type ModuleTree } from "./tree";

const ROW = 24;
/** Narrower rectangles (pixels) hold no text. */
const TEXT_FROM = 28;

interface IcicleProps {
  tree: ModuleTree;
  model: string;
  hasGpu: boolean;
  /** The module drawn over the full width. */
  top: string;
  selected: string | null;
  device: Device;
  direction: Direction;
  onSelect: (key: string) => void;
}

export function Icicle({ tree, model, hasGpu, top, selected, device, direction, onSelect }: IcicleProps) {
  const box = useRef<HTMLDivElement>(null);
  const pixels = useWidth(box);
  const iterations = useIterations();
  const cells = useMemo(
    () =>
      layOut(
        tree,
        top,
        (row) => timeOf(row, device, direction),
        pixels,
        (row) => ownTimeOf(row, device, direction),
      ),
    [tree, top, device, direction, pixels],
  );
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
      const above = keyAbove(cell.key);
      if (above !== null) onSelect(above);
    } else {
      const next = step(cells, focused, event.key);
      if (next === null) return;
      focus(next);
    }
    event.preventDefault();
  };

  if (cells.length === 0) {
    return (
      <p class="missing">
        No {direction === "both" ? "" : `${direction} `}
        {device.toUpperCase()} time in this module.
      </p>
    );
  }
  const levels = cells[cells.length - 1]!.level + 1;
  return (
    <div class="icicle-box" ref={box}>
      <div
        class="icicle"
        role="tree"
        aria-label="Modules by time; arrow keys walk the tree, Enter selects"
        data-testid="modules-icicle"
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
                ? mergedText(cell, iterations)
                : `${labelOf(cell.row, model)}, ${formatNs(cell.ns / iterations)}`
            }
            class={`icicle-cell${cell.merged > 0 ? " icicle-merged" : isUnknown(cell.row) ? " icicle-unknown" : ""}`}
            tabIndex={index === focused ? 0 : -1}
            data-tip={cell.merged > 0 ? mergedText(cell, iterations) : describe(cell.row, model, hasGpu, iterations)}
            style={{
              top: `${cell.level * ROW}px`,
              left: `${100 * cell.left}%`,
              width: `${100 * cell.width}%`,
              "--cell": cell.merged > 0 ? "var(--c-other)" : colour(cell.row),
            }}
            onFocus={() => setFocused(index)}
            onClick={() => onSelect(cell.key)}
          >
            {cell.width * pixels >= TEXT_FROM && (
              <span>
                {cell.merged > 0 ? "…" : cell.level === 0 ? cell.row.path || model : labelOf(cell.row, model)}
              </span>
            )}
          </button>
        ))}
      </div>
    </div>
  );
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

/** The scale from "no eligible time on Tensor Cores" to "all of it"; grey where there is none or it is unknown. */
export function colour(row: ModuleRow): string {
  if (row.eligible_ns === null) return "var(--accent)";
  if (row.eligible_ns === 0) return NOTHING_ELIGIBLE;
  if (isUnknown(row)) return UNKNOWN;
  return `color-mix(in srgb, var(--c-tensor-core) ${row.utilization_percent}%, var(--c-other-kernels))`;
}

const isUnknown = (row: ModuleRow): boolean => (row.eligible_ns ?? 0) > 0 && row.utilization_percent === null;

const mergedText = (cell: Cell, iterations: number): string =>
  `${cell.merged} ${cell.merged === 1 ? "module" : "modules"} too small to draw, ${formatNs(cell.ns / iterations)} together`;

/** All that hovering says, line by line; sums divided by `iterations`. */
export function describe(row: ModuleRow, model: string, hasGpu: boolean, iterations = 1): string {
  const time = (ns: number | null): string => formatNs(perStep(ns, iterations));
  const count = (calls: number | null): string =>
    formatUnit(perStep(calls, iterations), unitPerStep("count", iterations));
  const halves = (both: number | null, forward: number | null, backward: number | null): string =>
    `${exactUnit(perStep(both, iterations), "ns")} (forward ${time(forward)}, backward ${time(backward)})`;
  const lines = [(row.path || model) + (row.type && row.path ? ` (${row.type})` : "")];
  if (hasGpu)
    lines.push(
      `GPU time ${halves(row.gpu_ns, row.gpu_forward_ns, row.gpu_backward_ns)}, ${formatUnit(row.gpu_percent, "percent")} of all`,
    );
  lines.push(`CPU time ${halves(row.cpu_ns, row.cpu_forward_ns, row.cpu_backward_ns)}`);
  lines.push(`Own time ${time(hasGpu ? row.gpu_own_ns : row.cpu_own_ns)}`);
  lines.push(`Forward calls ${count(row.calls)}, op calls ${count(row.op_calls)}`);
  if (hasGpu)
    lines.push(
      row.eligible_ns === 0
        ? "Nothing in it could use Tensor Cores"
        : `On Tensor Cores ${formatUnit(row.utilization_percent, "percent")} of ${time(row.eligible_ns)} eligible`,
    );
  return lines.join("\n");
}

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
