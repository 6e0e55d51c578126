/** What width and colour of an icicle's rectangles stand for. */
import { NOTHING_ELIGIBLE, UNKNOWN } from "./colours";

interface IcicleLegendProps {
  /** Such as "GPU time, forward and backward; order of the first call". */
  width: string;
  /** What the scale is a share of, such as "Eligible time"; null without a GPU. */
  share: string | null;
  /** Whether some rectangles can have nothing eligible. */
  eligible?: boolean;
}

export function IcicleLegend({ width, share, eligible = true }: IcicleLegendProps) {
  return (
    <div class="icicle-legend">
      <span class="icicle-width">Width: {width}</span>
      {share !== null && (
        <>
          <span>
            {share} on Tensor Cores: 0 %
            <i class="icicle-scale" aria-hidden="true" />
            100 %
          </span>
          {eligible && (
            <span>
              <i class="icicle-swatch" style={{ "--cell": NOTHING_ELIGIBLE }} aria-hidden="true" />
              nothing eligible
            </span>
          )}
          <span>
            <i class="icicle-swatch icicle-unknown" style={{ "--cell": UNKNOWN }} aria-hidden="true" />
            unknown
          </span>
        </>
      )}
    </div>
  );
}
