/**
 * What of a line is drawn: an event that is wide enough by itself, all others pixel by pixel. A pixel takes the colour of the
 * longest event in it and is the paler, the less of it is covered; equal neighbours become one run.
 */
import { firstAbove, type Block, type Lane } from "./model";
import type { Span } from "./viewport";

/** Narrower events share a pixel with others. */
export const WIDE_FROM = 2;
/** Where the steps from 1 to 4 of how much is covered begin, as in the server's segments. */
const COVER_STEPS = [1 / 16, 1 / 4, 5 / 8] as const;
export const COVERS = COVER_STEPS.length + 1;
/** About what is covered in each step. */
export const COVER_SHARES = [1 / 32, 5 / 32, 7 / 16, 13 / 16] as const;

export interface Painter {
  /** An event by itself, from `x0` to `x1`. */
  wide(block: Block, index: number, x0: number, x1: number): void;
  /** Pixels from `x0` to `x1` in the colour of the name; `cover` is a step from 1 to `COVERS`. */
  run(name: number, x0: number, x1: number, cover: number): void;
}

/** Reports the events of a line that lie in `span`; `pixels` is its width. Returns how many events there were. */
export function paintLane(lane: Lane, span: Span, pixels: number, painter: Painter): number {
  const scale = pixels / (span.to - span.from);
  let seen = 0;
  for (const block of lane.blocks) seen += paintBlock(block, span, scale, painter);
  return seen;
}

export interface GapPainter {
  wide(block: Block, index: number, x0: number, x1: number): void;
  /** A pixel of which a share (above 0, at most 1) is covered, most of it by events of the name. */
  part(name: number, pixel: number, share: number): void;
}

/**
 * Reports the idle gaps of a line: what is narrower than `WIDE_FROM` by the share that it has of each pixel, exactly, so that the
 * area that is drawn is the time. Steps of cover, as other events have, would make many short gaps look like long ones.
 */
export function paintGaps(lane: Lane, span: Span, pixels: number, painter: GapPainter): void {
  const scale = pixels / (span.to - span.from);
  const covered = new Float64Array(Math.ceil(pixels));
  const longest = new Float64Array(covered.length);
  const names = new Int32Array(covered.length);
  for (const block of lane.blocks) {
    for (let index = firstAbove(block.reach, span.from); index < block.start.length; index++) {
      if (block.start[index]! >= span.to) break;
      const x0 = (block.start[index]! - span.from) * scale;
      const x1 = (block.stop[index]! - span.from) * scale;
      if (x1 - x0 >= WIDE_FROM) {
        painter.wide(block, index, x0, x1);
        continue;
      }
      for (let pixel = Math.max(0, Math.floor(x0)); pixel < Math.min(covered.length, x1); pixel++) {
        const inside = Math.min(x1, pixel + 1) - Math.max(x0, pixel);
        if (inside <= 0) continue;
        covered[pixel]! += inside;
        if (inside > longest[pixel]!) {
          longest[pixel] = inside;
          names[pixel] = block.name[index]!;
        }
      }
    }
  }
  covered.forEach((share, pixel) => {
    if (share > 0) painter.part(names[pixel]!, pixel, Math.min(1, share));
  });
}

function paintBlock(block: Block, { from, to }: Span, scale: number, painter: Painter): number {
  const { start, stop, name } = block;
  const count = start.length;
  const begin = firstAbove(block.reach, from);
  let pixel = -1;
  let covered = 0;
  let longest = -1;
  let pixelName = 0;
  let runName = 0;
  let runCover = 0;
  let runFrom = -1;
  let runTo = -1;

  const endPixel = (): void => {
    if (pixel < 0) return;
    const cover = covered <= COVER_STEPS[0] ? 1 : covered <= COVER_STEPS[1] ? 2 : covered <= COVER_STEPS[2] ? 3 : 4;
    if (pixel === runTo && runName === pixelName && runCover === cover) runTo = pixel + 1;
    else {
      if (runFrom >= 0) painter.run(runName, runFrom, runTo, runCover);
      runName = pixelName;
      runCover = cover;
      runFrom = pixel;
      runTo = pixel + 1;
    }
    pixel = -1;
    covered = 0;
    longest = -1;
  };

  let index = begin;
  for (; index < count; index++) {
    const at = start[index]!;
    if (at >= to) break;
    const x0 = (at - from) * scale;
    const x1 = (stop[index]! - from) * scale;
    const width = x1 - x0;
    if (width >= WIDE_FROM) {
      endPixel();
      painter.wide(block, index, x0, x1);
      continue;
    }
    if (x1 < 0) continue;
    const here = x0 < 0 ? 0 : Math.floor(x0);
    if (here !== pixel) {
      endPixel();
      pixel = here;
    }
    covered += width;
    if (width > longest) {
      longest = width;
      pixelName = name[index]!;
    }
  }
  endPixel();
  if (runFrom >= 0) painter.run(runName, runFrom, runTo, runCover);
  return index - begin;
}
