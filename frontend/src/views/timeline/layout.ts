/** Tracks in, their places from top to bottom out; and which line lies under a point. Pixels. */
import type { TimelineTrack } from "../../api/types";

export interface Row {
  track: number;
  top: number;
  /** With the heading above the lines, where there is one. */
  height: number;
  linesTop: number;
  lineHeight: number;
  /** Lines that are shown: one where the track is folded. */
  lines: number;
  foldable: boolean;
}

export interface Layout {
  rows: Row[];
  height: number;
  /** Width of the labels at the left; 0 where they stand above the lines. */
  gutter: number;
}

const LINE_HEIGHTS: Record<TimelineTrack["kind"], number> = { parts: 18, idle: 20, stream: 24, thread: 18 };
const GAP = 6;
const HEADING = 19;
/** Narrower figures have their labels above the lines. */
export const GUTTER_FROM = 720;
const GUTTER = 196;

export function layOut(tracks: readonly TimelineTrack[], folded: ReadonlySet<string>, width: number): Layout {
  const gutter = width >= GUTTER_FROM ? GUTTER : 0;
  const heading = gutter > 0 ? 0 : HEADING;
  const rows: Row[] = [];
  let top = 0;
  tracks.forEach((track, index) => {
    const lineHeight = LINE_HEIGHTS[track.kind];
    const foldable = track.levels > 1;
    const lines = foldable && folded.has(track.key) ? 1 : track.levels;
    // A label has two lines of text.
    const height = Math.max(heading + lines * lineHeight, gutter > 0 && track.kind !== "parts" ? 32 : 0) + GAP;
    rows.push({ track: index, top, height, linesTop: top + heading, lineHeight, lines, foldable });
    top += height;
  });
  return { rows, height: top, gutter };
}

/** The track and level under `y`; null between the lines. */
export function lineAt(layout: Layout, y: number): { track: number; level: number } | null {
  const row = layout.rows.find(
    (candidate) => y >= candidate.linesTop && y < candidate.linesTop + candidate.lines * candidate.lineHeight,
  );
  return row ? { track: row.track, level: Math.floor((y - row.linesTop) / row.lineHeight) } : null;
}

/** The middle of a line, of the shown line that stands for it where it is folded away. */
export function lineTop(layout: Layout, track: number, level: number): { top: number; height: number } | null {
  const row = layout.rows[track];
  if (!row) return null;
  return { top: row.linesTop + Math.min(level, row.lines - 1) * row.lineHeight, height: row.lineHeight };
}

/** Tracks that are folded at first: threads on which little of the training runs. */
export function foldedAtFirst(tracks: readonly TimelineTrack[]): Set<string> {
  return new Set(
    tracks
      .filter((track) => track.kind === "thread" && !/: (training|backward)$/.test(track.label))
      .map((track) => track.key),
  );
}
