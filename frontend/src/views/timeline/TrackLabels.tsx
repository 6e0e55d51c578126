/** The names of the tracks, at the left of their lines or above them; those with several lines fold. */
import type { TimelineTrack } from "../../api/types";
import type { Layout } from "./layout";

interface TrackLabelsProps {
  tracks: readonly TimelineTrack[];
  layout: Layout;
  folded: ReadonlySet<string>;
  onFold: (key: string) => void;
}

export function TrackLabels({ tracks, layout, folded, onFold }: TrackLabelsProps) {
  return (
    <ul class={`timeline-labels${layout.gutter > 0 ? " timeline-labels-left" : ""}`} aria-label="Rows">
      {layout.rows.map((row) => {
        const track = tracks[row.track]!;
        const text = (
          <>
            <span class="timeline-label">{track.label}</span>
            {(layout.gutter === 0 || row.height > 32) && (
              <span class="timeline-label-detail muted">{track.detail}</span>
            )}
          </>
        );
        const style = {
          top: `${row.top}px`,
          ...(layout.gutter > 0 && { width: `${layout.gutter}px`, maxHeight: `${row.height}px` }),
        };
        return (
          <li key={track.key} style={style} title={`${track.label}: ${track.detail}`}>
            {row.foldable ? (
              <button type="button" aria-expanded={!folded.has(track.key)} onClick={() => onFold(track.key)}>
                <span aria-hidden="true" class="timeline-chevron">
                  {folded.has(track.key) ? "▸" : "▾"}
                </span>
                {text}
              </button>
            ) : (
              <span class="timeline-label-plain">{text}</span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
