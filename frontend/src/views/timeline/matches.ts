/** What a search, an op or a kernel found in the iteration, by track. */
import type { TimelineMatches, TimelineSpot } from "../../api/types";
import type { Timeline } from "./model";
import { placeOf } from "./model";

/** Matches of one track in order of start; times in ns since the window's start. */
export interface TrackMatches {
  ids: Set<number>;
  id: Float64Array;
  level: Int32Array;
  start: Float64Array;
  stop: Float64Array;
}

export interface Matches {
  count: number;
  shown: number;
  byTrack: Map<number, TrackMatches>;
}

export function decodeMatches(answer: TimelineMatches): Matches {
  const byTrack = new Map<number, TrackMatches>();
  for (const lane of answer.lanes) {
    const count = lane.id.length;
    const id = new Float64Array(count);
    const start = new Float64Array(count);
    const stop = new Float64Array(count);
    let row = 0;
    let time = 0;
    for (let at = 0; at < count; at++) {
      id[at] = row += lane.id[at]!;
      start[at] = time += lane.start[at]!;
      stop[at] = time + lane.duration[at]!;
    }
    byTrack.set(lane.track, { ids: new Set(id), id, level: Int32Array.from(lane.level), start, stop });
  }
  return { count: answer.count, shown: answer.shown, byTrack };
}

/** All matches in order of start, for going from one to the next. */
export function inOrder(matches: Matches): { track: number; index: number; start: number }[] {
  const found: { track: number; index: number; start: number }[] = [];
  for (const [track, { start }] of matches.byTrack)
    start.forEach((at, index) => {
      found.push({ track, index, start: at });
    });
  return found.sort((a, b) => a.start - b.start || a.track - b.track || a.index - b.index);
}

/** A match as an event; without its name where it is not loaded. */
export function spotOfMatch(timeline: Timeline, matches: Matches, track: number, index: number): TimelineSpot {
  const found = matches.byTrack.get(track)!;
  const start_ns = found.start[index]!;
  const spot: TimelineSpot = {
    id: `${timeline.tracks[track]!.source}${found.id[index]!}`,
    track,
    level: found.level[index]!,
    label: "",
    kind: "other",
    start_ns,
    duration_ns: found.stop[index]! - start_ns,
  };
  const place = placeOf(timeline, spot);
  return place ? timeline.spotOf(place) : spot;
}
