/** What width and colour of the icicle's rectangles stand for. */
import type { Device, Direction } from "./layout";

/** Colours of rectangles that have no place on the scale. */
export const NOTHING_ELIGIBLE = "var(--c-unknown)";
export const UNKNOWN = "var(--c-other)";

const OF: Record<Direction, string> = { both: "forward and backward", forward: "forward", backward: "backward" };

export function IcicleLegend({ hasGpu, device, direction }: { hasGpu: boolean; device: Device; direction: Direction }) {
  return (
    <div class="icicle-legend">
      <span class="icicle-width">
        Width: {device === "gpu" ? "GPU" : "CPU"} time, {OF[direction]}; order of the first call
      </span>
      {hasGpu && (
        <>
          <span>
            Eligible time on Tensor Cores: 0 %
            <i class="icicle-scale" aria-hidden="true" />
            100 %
          </span>
          <span>
            <i class="icicle-swatch" style={{ "--cell": NOTHING_ELIGIBLE }} aria-hidden="true" />
            nothing eligible
          </span>
          <span>
            <i class="icicle-swatch icicle-unknown" style={{ "--cell": UNKNOWN }} aria-hidden="true" />
            unknown
          </span>
        </>
      )}
    </div>
  );
}
