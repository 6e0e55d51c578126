/**
 * Memory against time: each point a set of checkpointed modules. The handle is dragged, or moved by the arrow keys; what it is at
 * is shown at once, and asked for when it is released.
 */
import { useMemo, useRef, useState } from "preact/hooks";
import type { CheckpointRow } from "../../api/types";
import { Drawing } from "../../components/export/Drawing";
import { formatNs } from "../../format/duration";
import { formatBytes } from "../../format/number";
import { CHECKPOINTS } from "./columns";
import { costOf, nearest, placesOf } from "./frontier";

interface FrontierChartProps {
  rows: CheckpointRow[];
  /** What PyTorch's allocator can have (MB); null where it is not known. */
  capacity: number | null;
  /** The modules that the page has now. */
  chosen: readonly string[];
  onChoose: (modules: readonly string[]) => void;
}

const bytes = (mb: number): string => formatBytes(mb * 1e6);
const part = (share: number): string => `${100 * share}%`;

export function FrontierChart({ rows, capacity, chosen, onChoose }: FrontierChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const places = useMemo(() => placesOf(rows), [rows]);
  const costs = useMemo(() => costOf(rows), [rows]);
  const timed = rows.every(({ step_ms: step }) => step !== null);
  const now = rows.findIndex(({ modules }) => modules.join() === chosen.join());
  const [held, setHeld] = useState<number | null>(null);
  const at = held ?? Math.max(now, 0);
  const row = rows[at]!;
  const highest = Math.max(...rows.map(({ peak_reserved_mb: mb }) => mb));
  const cost = (value: number): string => (timed ? formatNs(value * 1e6) : `${value} modules`);
  const pointed = (event: PointerEvent): number => {
    const { left, width } = box.current!.getBoundingClientRect();
    return nearest(places, (event.clientX - left) / Math.max(width, 1));
  };
  const letGo = (index: number): void => {
    setHeld(null);
    if (index !== now) onChoose(rows[index]!.modules);
  };
  const line = (value: (row: CheckpointRow) => number): string =>
    places.map(({ x }, index) => `${1000 * x},${1000 * (1 - value(rows[index]!) / highest)}`).join(" ");
  return (
    <Drawing name="Memory against time" columns={CHECKPOINTS} rows={rows}>
      <div class="frontier">
        <p class="frontier-words" data-testid="frontier-words" aria-live="polite">
          <strong>{bytes(row.peak_allocated_mb)}</strong> of tensors, {bytes(row.peak_reserved_mb)} reserved
          {timed && `, ${cost(costs[at]!)} a step`}:{" "}
          {row.modules.length === 0
            ? "no checkpoints"
            : `${row.modules.length} ${row.modules.length === 1 ? "module" : "modules"} computed again, up to ${row.modules[row.modules.length - 1]}`}
        </p>
        <div class="frontier-plot">
          <div class="frontier-y" aria-hidden="true">
            <span>{bytes(highest)}</span>
            <span>0</span>
          </div>
          <div
            ref={box}
            class="frontier-box"
            data-testid="frontier-box"
            onPointerDown={(event) => {
              event.currentTarget.setPointerCapture(event.pointerId);
              setHeld(pointed(event));
            }}
            onPointerMove={(event) => held !== null && setHeld(pointed(event))}
            onPointerUp={(event) => held !== null && letGo(pointed(event))}
            onPointerCancel={() => setHeld(null)}
          >
            <svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">
              <polyline class="frontier-reserved" points={line(({ peak_reserved_mb: mb }) => mb)} />
              <polyline class="frontier-line" points={line(({ peak_allocated_mb: mb }) => mb)} />
              {capacity !== null && capacity < highest && (
                <line
                  class="frontier-capacity"
                  x1="0"
                  x2="1000"
                  y1={1000 * (1 - capacity / highest)}
                  y2={1000 * (1 - capacity / highest)}
                />
              )}
            </svg>
            {places.map(({ x, y }, index) => (
              <i
                key={rows[index]!.modules.join()}
                class={index === at ? "frontier-point frontier-held" : "frontier-point"}
                style={{ left: part(x), top: part(y) }}
                aria-hidden="true"
              />
            ))}
          </div>
        </div>
        <input
          type="range"
          class="frontier-slider"
          min={0}
          max={rows.length - 1}
          step={1}
          value={at}
          aria-label="Memory against time: sets of checkpointed modules"
          aria-valuetext={`${bytes(row.peak_allocated_mb)}, ${cost(costs[at]!)}`}
          data-testid="frontier-slider"
          onInput={(event) => setHeld(Number(event.currentTarget.value))}
          onChange={(event) => letGo(Number(event.currentTarget.value))}
        />
        <div class="frontier-x" aria-hidden="true">
          <span>{cost(costs[0]!)}</span>
          <span class="muted">{timed ? "step time" : "modules computed again"}; solid: tensors, dashed: reserved</span>
          <span>{cost(costs[costs.length - 1]!)}</span>
        </div>
      </div>
    </Drawing>
  );
}
