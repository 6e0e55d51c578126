/**
 * Answers of the timeline routes in, events in typed columns out: per line of the drawing its blocks of events in order of start.
 * A block holds what one answer has of a line, so that a chunk that arrives late is added without touching the others.
 */
import type {
  EventKind,
  TimelineEventsPage,
  TimelineLane,
  TimelineName,
  TimelinePage,
  TimelineSegments,
  TimelineSpot,
  TimelineTrack,
} from "../../api/types";

/** Events of one line from one answer, in order of start; times in ns since the window's start. */
export interface Block {
  /** The chunk that it came with, -1 for the first answer. */
  chunk: number;
  id: Float64Array;
  start: Float64Array;
  stop: Float64Array;
  name: Int32Array;
  /** The latest stop up to here: it rises even where events overlap, so it can be searched. */
  reach: Float64Array;
}

/** Runs of pixels that stand for events of chunks that are not loaded. */
export interface Coarse {
  start: Float64Array;
  stop: Float64Array;
  kind: Int32Array;
  cover: Int32Array;
}

export interface Lane {
  track: number;
  level: number;
  blocks: Block[];
  coarse: Coarse | null;
}

/** One event in a block. */
export interface Place {
  lane: Lane;
  block: Block;
  index: number;
}

export interface Name {
  label: string;
  kind: EventKind;
  other: boolean;
}

const NAMELESS: Name = { label: "", kind: "other", other: false };

export class Timeline {
  readonly tracks: TimelineTrack[];
  readonly windowNs: number;
  private readonly names = new Map<number, Name>();
  private readonly lanes = new Map<string, Lane>();
  private readonly loaded = new Set<number>();

  constructor(readonly page: TimelinePage) {
    this.tracks = page.tracks;
    this.windowNs = page.window_ns;
    this.addNames(page.names);
    for (const lane of page.lanes) this.addLane(lane, -1);
    for (const found of page.segments)
      this.lane(found.track, found.level).coarse = coarseOf(found, page.window_ns / page.bins);
  }

  /** A moment of the window, counted from where the step begins. */
  sinceStep(ns: number): number {
    return ns - this.page.iteration.start_ns;
  }

  /** A line; made where nothing is on it yet. */
  lane(track: number, level: number): Lane {
    const key = `${track} ${level}`;
    let found = this.lanes.get(key);
    if (!found) this.lanes.set(key, (found = { track, level, blocks: [], coarse: null }));
    return found;
  }

  name(index: number): Name {
    return this.names.get(index) ?? NAMELESS;
  }

  has(chunk: number): boolean {
    return this.loaded.has(chunk);
  }

  get complete(): boolean {
    return this.loaded.size >= this.page.chunks.length;
  }

  addChunk(answer: TimelineEventsPage): void {
    if (this.loaded.has(answer.chunk)) return;
    this.loaded.add(answer.chunk);
    this.addNames(answer.names);
    for (const lane of answer.lanes) this.addLane(lane, answer.chunk);
  }

  /** The parts of a stretch of time whose chunks are not loaded. */
  missing(from: number, to: number): [from: number, to: number][] {
    const found: [number, number][] = [];
    const { chunks } = this.page;
    for (let index = 0; index < chunks.length; index++) {
      const begin = chunks[index]!.start_ns;
      if (begin >= to) break;
      if (this.loaded.has(index)) continue;
      // Chunks follow each other by their starts; the first one also holds what began before the window.
      const low = Math.max(from, index === 0 ? 0 : begin);
      const high = Math.min(to, chunks[index + 1]?.start_ns ?? this.windowNs);
      if (high > low) found.push([low, high]);
    }
    return found;
  }

  /** Forgets a chunk, to hold memory down in recordings of millions of events. */
  dropChunk(chunk: number): void {
    if (!this.loaded.delete(chunk)) return;
    for (const lane of this.lanes.values()) lane.blocks = lane.blocks.filter((block) => block.chunk !== chunk);
  }

  /** The letter and row that name an event in links and requests. */
  idOf(place: Place): string {
    return `${this.tracks[place.lane.track]!.source}${place.block.id[place.index]!}`;
  }

  spotOf(place: Place): TimelineSpot {
    const { lane, block, index } = place;
    const name = this.name(block.name[index]!);
    const start_ns = block.start[index]!;
    return {
      id: this.idOf(place),
      track: lane.track,
      level: lane.level,
      label: name.label,
      kind: name.kind,
      start_ns,
      duration_ns: block.stop[index]! - start_ns,
    };
  }

  private addNames(names: TimelineName[]): void {
    for (const { index, label, kind, other } of names) this.names.set(index, { label, kind, other });
  }

  private addLane(lane: TimelineLane, chunk: number): void {
    this.lane(lane.track, lane.level).blocks.push(blockOf(lane, chunk));
  }
}

function blockOf(lane: TimelineLane, chunk: number): Block {
  const count = lane.id.length;
  const id = new Float64Array(count);
  const start = new Float64Array(count);
  const stop = new Float64Array(count);
  const reach = new Float64Array(count);
  let row = 0;
  let time = 0;
  let latest = -Infinity;
  for (let at = 0; at < count; at++) {
    row += lane.id[at]!;
    time += lane.start[at]!;
    id[at] = row;
    start[at] = time;
    stop[at] = time + lane.duration[at]!;
    if (stop[at]! > latest) latest = stop[at]!;
    reach[at] = latest;
  }
  return { chunk, id, start, stop, name: Int32Array.from(lane.name), reach };
}

function coarseOf(found: TimelineSegments, binNs: number): Coarse {
  const count = found.start.length;
  const start = new Float64Array(count);
  const stop = new Float64Array(count);
  let bin = 0;
  for (let at = 0; at < count; at++) {
    bin += found.start[at]!;
    start[at] = bin * binNs;
    stop[at] = (bin + found.length[at]!) * binNs;
  }
  return { start, stop, kind: Int32Array.from(found.kind), cover: Int32Array.from(found.cover) };
}

/** The first index whose value is greater than `limit`; `values` rise. */
export function firstAbove(values: Float64Array, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The event of a line under a moment, or the nearest within `slack` ns of it. Where several overlap, the last that began. */
export function eventAt(lane: Lane, time: number, slack: number): Place | null {
  let best: Place | null = null;
  let bestDistance = Infinity;
  let bestStart = -Infinity;
  for (const block of lane.blocks) {
    for (
      let index = firstAbove(block.reach, time - slack);
      index < block.start.length && block.start[index]! <= time + slack;
      index++
    ) {
      const start = block.start[index]!;
      const distance = start > time ? start - time : Math.max(0, time - block.stop[index]!);
      if (distance > slack || distance > bestDistance || (distance === bestDistance && start < bestStart)) continue;
      [best, bestDistance, bestStart] = [{ lane, block, index }, distance, start];
    }
  }
  return best;
}

/** The next (`step` 1) or previous (-1) event on the line; null at its end. Events that start together follow their ids. */
export function neighbour(from: Place, step: 1 | -1): Place | null {
  const start = from.block.start[from.index]!;
  const id = from.block.id[from.index]!;
  const after = (block: Block, index: number): boolean =>
    block.start[index]! > start || (block.start[index] === start && block.id[index]! > id);
  let best: Place | null = null;
  for (const block of from.lane.blocks) {
    let low = 0;
    let high = block.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (after(block, middle)) high = middle;
      else low = middle + 1;
    }
    let index = low;
    if (step < 0) {
      index = low - 1;
      if (block === from.block) index = from.index - 1;
      else if (index >= 0 && block.start[index] === start && block.id[index] === id) index--;
    }
    if (index < 0 || index >= block.start.length) continue;
    if (
      best === null ||
      (step > 0 ? before(block, index, best) : before(best.block, best.index, { lane: from.lane, block, index }))
    )
      best = { lane: from.lane, block, index };
  }
  return best;
}

function before(block: Block, index: number, other: Place): boolean {
  const start = block.start[index]!;
  const otherStart = other.block.start[other.index]!;
  return start < otherStart || (start === otherStart && block.id[index]! < other.block.id[other.index]!);
}

/** The event that a spot names, where it is loaded. */
export function placeOf(timeline: Timeline, spot: TimelineSpot): Place | null {
  if (spot.track < 0) return null;
  const lane = timeline.lane(spot.track, spot.level);
  const row = Number(spot.id.slice(1));
  for (const block of lane.blocks) {
    for (
      let index = firstAbove(block.reach, spot.start_ns - 1);
      index < block.start.length && block.start[index]! <= spot.start_ns;
      index++
    ) {
      if (block.id[index] === row) return { lane, block, index };
    }
  }
  return null;
}
