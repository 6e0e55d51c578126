/** What hovering over an event tells at once, without asking the server. */
import type { EventKind, TimelineSpot } from "../../api/types";
import { formatNs } from "../../format/duration";
import type { Timeline } from "./model";

export interface Hovered {
  spot: TimelineSpot;
  /** Of the pointer, in the window. */
  x: number;
  y: number;
}

/** What a kind of event is called. */
export const KIND_WORDS: Record<EventKind, string> = {
  forward: "forward op",
  backward: "backward op",
  optimizer: "optimizer op",
  dataloader: "data loading",
  other: "other op",
  launch: "launching call",
  wait: "call that waits for the GPU",
  copy: "copying call",
  runtime: "CUDA call",
  module: "module",
  annotation: "annotation",
  overhead: "profiler's own work",
  tensor_core: "kernel on Tensor Cores",
  other_kernels: "kernel, not on Tensor Cores",
  unknown_kernels: "kernel; whether on Tensor Cores is unknown",
  memory: "copy or set",
  idle_dataloader: "cause of an idle GPU",
  idle_cpu_launch: "cause of an idle GPU",
  idle_python: "cause of an idle GPU",
  idle_other: "idle GPU",
};

/** What a kind is on this track: a stretch is no op. */
export function kindWords(timeline: Timeline, spot: TimelineSpot): string {
  return timeline.tracks[spot.track]?.kind === "parts" ? "part of the step" : KIND_WORDS[spot.kind];
}

/** One sentence for screen readers. */
export function describeSpot(timeline: Timeline, spot: TimelineSpot): string {
  return `${spot.label}, ${kindWords(timeline, spot)}, ${formatNs(spot.duration_ns)}, at ${formatNs(timeline.sinceStep(spot.start_ns))}, ${timeline.tracks[spot.track]?.label ?? ""}`;
}

const WIDTH = 320;

export function HoverCard({ timeline, hovered: { spot, x, y } }: { timeline: Timeline; hovered: Hovered }) {
  const left = Math.max(8, Math.min(x + 14, document.documentElement.clientWidth - WIDTH - 8));
  const above = y > window.innerHeight - 130;
  return (
    <div
      class="timeline-hover"
      style={{
        left: `${left}px`,
        top: above ? undefined : `${y + 16}px`,
        bottom: above ? `${window.innerHeight - y + 12}px` : undefined,
        maxWidth: `${WIDTH}px`,
      }}
      data-testid="timeline-hover"
    >
      <strong>{spot.label}</strong>
      <span>
        {formatNs(spot.duration_ns)} <span class="muted">at {formatNs(timeline.sinceStep(spot.start_ns))}</span>
      </span>
      <span class="muted">{kindWords(timeline, spot)}</span>
    </div>
  );
}
