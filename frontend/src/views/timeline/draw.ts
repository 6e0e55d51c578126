/** Draws the lines, the ruler and what is selected. Only what is visible is looked at: by line, then by binary search in it. */
import type { TimelineIteration, TimelineSpot } from "../../api/types";
import { formatNs } from "../../format/duration";
import { lineTop, type Layout } from "./layout";
import type { Matches } from "./matches";
import { firstAbove, type Block, type Coarse, type Lane, type Timeline } from "./model";
import type { Palette, Theme } from "./palette";
import { COVERS, COVER_SHARES, paintGaps, paintLane, type GapPainter, type Painter } from "./pixels";
import { ticks, type Span } from "./viewport";

export interface Scene {
  timeline: Timeline;
  layout: Layout;
  span: Span;
  /** Size of the visible part in CSS pixels; the lines begin at `layout.gutter`. */
  width: number;
  height: number;
  scrollTop: number;
  theme: Theme;
  selected: TimelineSpot | null;
  cursor: TimelineSpot | null;
  /** From what launched to what ran. */
  links: readonly (readonly [from: TimelineSpot, to: TimelineSpot])[];
  matches: Matches | null;
}

export const RULER_HEIGHT = 26;
/** Narrower events hold no text. */
const TEXT_FROM = 26;
const FONT_SIZE = 11.5;

export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { timeline, layout, theme, width, height, scrollTop } = scene;
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, width - layout.gutter, height);
  context.clip();
  context.translate(layout.gutter, -scrollTop);
  drawOutside(context, scene);
  const brush = new Brush(context, scene);
  for (const row of layout.rows) {
    if (row.top + row.height < scrollTop || row.top > scrollTop + height) continue;
    context.fillStyle = theme.lineSoft;
    context.fillRect(0, row.top + row.height - 3, width, 1);
    for (let level = 0; level < row.lines; level++) {
      const top = row.linesTop + level * row.lineHeight;
      if (top + row.lineHeight < scrollTop || top > scrollTop + height) continue;
      brush.line(timeline.lane(row.track, level), top, row.lineHeight - 2);
    }
  }
  brush.finish();
  drawMatches(context, scene);
  drawLinks(context, scene);
  for (const [spot, dashed] of [
    [scene.cursor, true],
    [scene.selected, false],
  ] as const)
    if (spot) drawOutline(context, scene, spot, dashed);
  context.restore();
}

/** Collects rectangles by colour and texts, so that the canvas changes its colour once for each. */
class Brush implements Painter, GapPainter {
  private readonly rectangles = new Map<string, number[]>();
  private readonly texts: { text: string; x: number; y: number; colour: string }[] = [];
  private readonly pixels: number;
  private top = 0;
  private height = 0;
  private found: Set<number> | null = null;
  private gaps = false;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly scene: Scene,
  ) {
    this.pixels = scene.width - scene.layout.gutter;
    context.font = scene.theme.font;
    context.textBaseline = "middle";
  }

  line(lane: Lane, top: number, height: number): void {
    this.top = top;
    this.height = height;
    this.found = this.scene.matches ? (this.scene.matches.byTrack.get(lane.track)?.ids ?? NONE) : null;
    this.gaps = this.scene.timeline.tracks[lane.track]?.kind === "idle";
    if (lane.coarse) this.coarse(lane.coarse);
    if (this.gaps) paintGaps(lane, this.scene.span, this.pixels, this);
    else paintLane(lane, this.scene.span, this.pixels, this);
  }

  wide(block: Block, index: number, x0: number, x1: number): void {
    const { timeline } = this.scene;
    const name = timeline.name(block.name[index]!);
    const palette = this.scene.theme.of[name.kind]!;
    const pale = this.found !== null ? !this.found.has(block.id[index]!) : name.other;
    const left = Math.max(x0, -2);
    const right = Math.min(x1, this.pixels + 2);
    // A line of light between neighbours.
    const width = right - left > 4 ? right - left - 1 : right - left;
    this.rectangle(pale ? palette.pale[3]! : palette.own[3]!, left, width);
    const from = Math.max(0, left);
    if (right - from >= TEXT_FROM)
      this.text(
        name.label,
        name.kind === "module",
        from + 4,
        right - from - 8,
        pale ? palette.paleText : palette.ownText,
      );
  }

  run(name: number, x0: number, x1: number, cover: number): void {
    const known = this.scene.timeline.name(name);
    this.rectangle(
      this.shade(this.scene.theme.of[known.kind]!, this.found !== null || known.other, cover),
      x0,
      x1 - x0,
    );
  }

  part(name: number, pixel: number, share: number): void {
    const known = this.scene.timeline.name(name);
    this.column(
      this.shade(this.scene.theme.of[known.kind]!, this.found !== null || known.other, COVERS),
      pixel,
      1,
      share,
    );
  }

  finish(): void {
    const { context } = this;
    for (const [colour, list] of this.rectangles) {
      context.fillStyle = colour;
      for (let at = 0; at < list.length; at += 4)
        context.fillRect(list[at]!, list[at + 1]!, list[at + 2]!, list[at + 3]!);
    }
    for (const { text, x, y, colour } of this.texts) {
      if (context.fillStyle !== colour) context.fillStyle = colour;
      context.fillText(text, x, y);
    }
  }

  private coarse(found: Coarse): void {
    const { span, timeline, theme } = this.scene;
    const scale = this.pixels / (span.to - span.from);
    for (let at = firstAbove(found.stop, span.from); at < found.start.length && found.start[at]! < span.to; at++) {
      for (const [from, to] of timeline.missing(found.start[at]!, found.stop[at]!)) {
        const x0 = Math.max(-1, (from - span.from) * scale);
        const x1 = Math.min(this.pixels + 1, (to - span.from) * scale);
        const palette = theme.of[timeline.page.kinds[found.kind[at]!]!]!;
        const cover = found.cover[at]!;
        const pale = this.found !== null;
        if (this.gaps) this.column(this.shade(palette, pale, COVERS), x0, x1 - x0, COVER_SHARES[cover - 1]!);
        else this.rectangle(this.shade(palette, pale, cover), x0, x1 - x0);
      }
    }
  }

  private shade(palette: Palette, pale: boolean, cover: number): string {
    return (pale ? palette.pale : palette.own)[cover - 1]!;
  }

  private rectangle(colour: string, x: number, width: number): void {
    this.column(colour, x, width, 1);
  }

  /** A share of the line's height, from its bottom. */
  private column(colour: string, x: number, width: number, share: number): void {
    let list = this.rectangles.get(colour);
    if (!list) this.rectangles.set(colour, (list = []));
    list.push(x, this.top + this.height * (1 - share), width, this.height * share);
  }

  private text(label: string, keepsEnd: boolean, x: number, room: number, colour: string): void {
    const width = widthOf(this.context, label);
    let text = shorten(label, keepsEnd, room, width);
    // Characters differ in width: what was cut by the mean may still be too wide.
    const cut = text && text !== label ? widthOf(this.context, text) : 0;
    if (cut > room) text = shorten(label, keepsEnd, (room * room) / cut, width);
    if (text) this.texts.push({ text, x, y: this.top + this.height / 2 + 0.5, colour });
  }
}

const NONE: Set<number> = new Set();
const WIDTHS = new Map<string, number>();

/** Width of a text in the figure's font; measured once. */
function widthOf(context: CanvasRenderingContext2D, text: string): number {
  let width = WIDTHS.get(text);
  if (width === undefined) {
    if (WIDTHS.size > 20_000) WIDTHS.clear();
    WIDTHS.set(text, (width = context.measureText(text).width));
  }
  return width;
}

/** As much of a text as fits; of a path its end says more than its beginning. "" if there is no room for a useful part. */
export function shorten(text: string, keepsEnd: boolean, room: number, width: number): string {
  if (width <= room) return text;
  const fits = Math.floor((room / width) * text.length) - 1;
  if (fits < 2) return "";
  return keepsEnd ? `…${text.slice(-fits)}` : `${text.slice(0, fits)}…`;
}

/** What lies outside the measured iteration is shaded. */
function drawOutside(context: CanvasRenderingContext2D, { timeline, span, width, layout, theme }: Scene): void {
  const scale = (width - layout.gutter) / (span.to - span.from);
  const { start_ns, stop_ns } = timeline.page.iteration;
  context.fillStyle = theme.page;
  const x0 = (start_ns - span.from) * scale;
  const x1 = (stop_ns - span.from) * scale;
  if (x0 > 0) context.fillRect(0, 0, x0, layout.height);
  if (x1 < width) context.fillRect(Math.max(0, x1), 0, width, layout.height);
  context.fillStyle = theme.muted;
  if (start_ns > 0) context.fillRect(Math.round(x0), 0, 1, layout.height);
  if (stop_ns < timeline.windowNs) context.fillRect(Math.round(x1), 0, 1, layout.height);
}

/** Where a match is too narrow to be seen by its colour it has a mark of its own. */
function drawMatches(
  context: CanvasRenderingContext2D,
  { matches, span, layout, width, theme, scrollTop, height }: Scene,
): void {
  if (!matches) return;
  const pixels = width - layout.gutter;
  const scale = pixels / (span.to - span.from);
  context.fillStyle = theme.accent;
  for (const [track, found] of matches.byTrack) {
    const row = layout.rows[track];
    if (!row || row.top > scrollTop + height || row.top + row.height < scrollTop) continue;
    let last = -2;
    let lastLevel = -1;
    for (let at = 0; at < found.start.length; at++) {
      if (found.start[at]! > span.to) break;
      if (found.stop[at]! < span.from) continue;
      const x = (found.start[at]! - span.from) * scale;
      const level = Math.min(found.level[at]!, row.lines - 1);
      const wide = Math.max(2, (found.stop[at]! - found.start[at]!) * scale);
      if (wide <= 2 && level === lastLevel && x - last < 1) continue;
      last = x;
      lastLevel = level;
      context.fillRect(
        x,
        row.linesTop + level * row.lineHeight + row.lineHeight - 4,
        Math.min(wide, pixels - x + 2),
        3,
      );
      if (wide < 6) context.fillRect(x, row.linesTop + level * row.lineHeight, 2, row.lineHeight - 2);
    }
  }
}

function boxOf(
  { span, layout, width }: Scene,
  spot: TimelineSpot,
): { x0: number; x1: number; top: number; height: number } | null {
  const line = lineTop(layout, spot.track, spot.level);
  if (!line) return null;
  const scale = (width - layout.gutter) / (span.to - span.from);
  const x0 = (spot.start_ns - span.from) * scale;
  return { x0, x1: Math.max(x0 + 2, x0 + spot.duration_ns * scale), top: line.top, height: line.height - 2 };
}

function drawOutline(context: CanvasRenderingContext2D, scene: Scene, spot: TimelineSpot, dashed: boolean): void {
  const box = boxOf(scene, spot);
  if (!box) return;
  const left = Math.max(-4, box.x0);
  const right = Math.min(scene.width + 4, box.x1);
  context.save();
  context.lineWidth = 2;
  context.strokeStyle = dashed ? scene.theme.accent : scene.theme.text;
  if (dashed) context.setLineDash([4, 3]);
  context.strokeRect(left - 1, box.top - 1, right - left + 2, box.height + 2);
  context.restore();
}

/** Arrows from a launching call to what it launched. */
function drawLinks(context: CanvasRenderingContext2D, scene: Scene): void {
  context.save();
  context.strokeStyle = scene.theme.text;
  context.fillStyle = scene.theme.text;
  context.lineWidth = 1.5;
  context.globalAlpha = 0.85;
  for (const [from, to] of scene.links) {
    const a = boxOf(scene, from);
    const b = boxOf(scene, to);
    if (!a || !b) continue;
    const limit = scene.width * 3;
    const x0 = Math.max(-limit, Math.min(limit, (Math.max(a.x0, -4) + Math.min(a.x1, scene.width)) / 2));
    const x1 = Math.max(-limit, Math.min(limit, b.x0));
    if ((x0 < 0 && x1 < 0) || (x0 > scene.width && x1 > scene.width)) continue;
    const up = b.top < a.top;
    const y0 = up ? a.top : a.top + a.height;
    const y1 = up ? b.top + b.height + 1 : b.top - 1;
    const bend = Math.max(24, Math.abs(y1 - y0) / 2) * (up ? -1 : 1);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1 - (up ? -6 : 6));
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 4, y1 + (up ? 7 : -7));
    context.lineTo(x1 + 4, y1 + (up ? 7 : -7));
    context.fill();
  }
  context.restore();
}

/** Moments above the lines, counted from where the iteration begins, and where it begins and ends. */
export function drawRuler(context: CanvasRenderingContext2D, scene: Scene, iteration: TimelineIteration): void {
  const { span, layout, width, theme } = scene;
  const pixels = width - layout.gutter;
  const scale = pixels / (span.to - span.from);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, width, RULER_HEIGHT);
  context.font = theme.font;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, pixels, RULER_HEIGHT);
  context.clip();
  context.translate(layout.gutter, 0);
  // Counted from where the step begins; what is before has a minus sign.
  const origin = iteration.start_ns;
  const moments = ticks({ from: span.from - origin, to: span.to - origin }, pixels, 110);
  const step = (moments[1] ?? 0) - (moments[0] ?? 0);
  for (const moment of moments) {
    const x = (moment + origin - span.from) * scale;
    context.fillStyle = theme.line;
    context.fillRect(Math.round(x), 16, 1, 10);
    context.fillStyle = theme.muted;
    context.fillText(tickText(moment, step), x + 4, 12);
  }
  context.fillStyle = theme.text;
  for (const at of [iteration.start_ns, iteration.stop_ns]) {
    const x = Math.round((at - span.from) * scale);
    if (x < 0 || x > pixels) continue;
    context.fillRect(Math.min(x, pixels - 1), 4, 1, RULER_HEIGHT - 4);
  }
  context.restore();
  context.fillStyle = theme.line;
  context.fillRect(0, RULER_HEIGHT - 1, width, 1);
}

/** A moment with the digits that tell it from its neighbours: "12.35 ms" where the step is 10 µs. */
export function tickText(ns: number, step: number): string {
  if (ns === 0) return "0";
  const size = Math.abs(ns);
  const [factor, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = step > 0 ? Math.max(0, Math.ceil(Math.log10(factor) - Math.log10(step) - 1e-9)) : 0;
  return digits > 6 ? formatNs(ns) : `${(ns / factor).toFixed(digits)} ${unit}`;
}

export const fontOf = (family: string): string => `${FONT_SIZE}px ${family}`;
