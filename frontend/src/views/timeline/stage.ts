/**
 * The drawing and all that moves it: pointer, wheel, fingers and keys change the visible span, the cursor and the selection; a
 * frame is drawn at most once for each frame of the screen. Holds no Preact state: a redraw must cost a redraw and nothing else.
 */
import type { TimelineSpot } from "../../api/types";
import { draw, drawRuler, RULER_HEIGHT, type Scene } from "./draw";
import { lineAt, lineTop, type Layout } from "./layout";
import { inOrder, spotOfMatch, type Matches } from "./matches";
import { eventAt, neighbour, placeOf, type Place, type Timeline } from "./model";
import type { Theme } from "./palette";
import { clamp, fit, pan, reveal, stepOf, whole, zoom, type Span } from "./viewport";

export interface StageEvents {
  /** A click or Enter on an event; null for a click on nothing, or Escape. */
  onSelect(spot: TimelineSpot | null): void;
  onCursor(spot: TimelineSpot | null): void;
  onHover(spot: TimelineSpot | null, x: number, y: number): void;
  /** After each frame, for what follows the span. */
  onSpan(span: Span, pixels: number): void;
}

/** A press that moves less is a click. */
const CLICK_PIXELS = 4;
const WHEEL_ZOOM = 0.0016;
/** One press of W or S, and the share of the width that A or D moves. */
const KEY_ZOOM = 1.35;
const KEY_PAN = 0.18;
/** Events this near (pixels) count as hit: short ones could not be hit otherwise. */
const HIT_SLACK = 3;
/** Share of what is left of a glide that each frame covers. */
const GLIDE = 0.3;
const REDUCED_MOTION = window.matchMedia?.("(prefers-reduced-motion: reduce)") ?? { matches: false };

export class Stage {
  span: Span;
  selected: TimelineSpot | null = null;
  cursor: TimelineSpot | null = null;
  links: Scene["links"] = [];
  matches: Matches | null = null;
  /** Called after each frame: the loader of events looks up what is in view. */
  onLook: () => void = () => undefined;
  private width = 0;
  private height = 0;
  private frame = 0;
  private target: Span | null = null;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private dragged = 0;
  private shiftFrom: number | null = null;
  private readonly stops: (() => void)[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly ruler: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
    private readonly focusable: HTMLElement,
    private readonly band: HTMLElement,
    readonly timeline: Timeline,
    public layout: Layout,
    public theme: Theme,
    private readonly events: StageEvents,
  ) {
    this.span = stepOf(timeline.page.iteration, timeline.windowNs);
    const on = <K extends keyof HTMLElementEventMap>(
      target: HTMLElement,
      type: K,
      listener: (event: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ): void => {
      target.addEventListener(type, listener, options);
      this.stops.push(() => target.removeEventListener(type, listener, options));
    };
    on(scroller, "scroll", () => this.redraw());
    on(focusable, "wheel", (event) => this.onWheel(event), { passive: false });
    on(focusable, "keydown", (event) => this.onKey(event));
    on(canvas, "pointerdown", (event) => this.onDown(event));
    on(canvas, "pointermove", (event) => this.onMove(event));
    on(canvas, "pointerup", (event) => this.onUp(event));
    on(canvas, "pointercancel", (event) => this.pointers.delete(event.pointerId));
    on(canvas, "pointerleave", () => events.onHover(null, 0, 0));
    on(canvas, "dblclick", (event) => this.onDoubleClick(event));
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
  }

  /** The visible size changed (CSS pixels). */
  resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
    const ratio = window.devicePixelRatio || 1;
    for (const [canvas, tall] of [
      [this.canvas, height],
      [this.ruler, RULER_HEIGHT],
    ] as const) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tall * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${tall}px`;
    }
    this.redraw();
  }

  redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  /** Shows another span: at once under a hand that moves it, else gliding there, so that the eye can follow. */
  look(span: Span, glide = false): void {
    const next = clamp(span, this.timeline.windowNs);
    this.target = glide && !REDUCED_MOTION.matches ? next : null;
    if (!this.target) this.span = next;
    this.redraw();
  }

  /** Where a glide ends; the next key press goes on from there. */
  private get settled(): Span {
    return this.target ?? this.span;
  }

  private glide(): void {
    if (!this.target) return;
    const { from, to } = this.target;
    const close = Math.abs(this.span.from - from) + Math.abs(this.span.to - to) < 0.002 * (to - from);
    if (close) {
      this.span = this.target;
      this.target = null;
      return;
    }
    this.span = {
      from: this.span.from + GLIDE * (from - this.span.from),
      to: this.span.to + GLIDE * (to - this.span.to),
    };
    this.redraw();
  }

  /** Zooms so that an event is seen with what is around it. */
  focusOn(spot: TimelineSpot): void {
    // The request may come from a table below or a pane next to it.
    (this.focusable.parentElement ?? this.focusable).scrollIntoView?.({ block: "nearest" });
    this.look(
      fit(
        Math.max(0, spot.start_ns),
        Math.min(this.timeline.windowNs, spot.start_ns + spot.duration_ns),
        this.timeline.windowNs,
      ),
      true,
    );
    this.scrollTo(spot);
  }

  /** Moves as little as shows an event. */
  show(spot: TimelineSpot): void {
    this.look(reveal(this.settled, spot.start_ns, spot.start_ns + spot.duration_ns, this.timeline.windowNs), true);
    this.scrollTo(spot);
  }

  zoomBy(factor: number, anchor = 0.5, glide = false): void {
    this.look(zoom(glide ? this.settled : this.span, factor, anchor, this.timeline.windowNs), glide);
  }

  panBy(share: number, glide = false): void {
    this.look(pan(glide ? this.settled : this.span, share, this.timeline.windowNs), glide);
  }

  showStep(): void {
    this.look(stepOf(this.timeline.page.iteration, this.timeline.windowNs), true);
  }

  showAll(): void {
    this.look(whole(this.timeline.windowNs), true);
  }

  private get pixels(): number {
    return Math.max(1, this.width - this.layout.gutter);
  }

  /** All that is drawn now. */
  scene(): Scene {
    const { timeline, layout, span, width, height, theme, selected, cursor, links, matches } = this;
    return {
      timeline,
      layout,
      span,
      width,
      height,
      scrollTop: this.scroller.scrollTop,
      theme,
      selected,
      cursor,
      links,
      matches,
    };
  }

  private drawNow(): void {
    this.frame = 0;
    this.glide();
    const context = this.canvas.getContext("2d", { alpha: false });
    const above = this.ruler.getContext("2d", { alpha: false });
    if (!context || !above || this.width === 0 || this.height === 0) return;
    const ratio = this.canvas.width / this.width;
    const scene = this.scene();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, scene);
    above.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawRuler(above, scene, this.timeline.page.iteration);
    this.events.onSpan(this.span, this.pixels);
    this.onLook();
  }

  private scrollTo(spot: TimelineSpot): void {
    const line = lineTop(this.layout, spot.track, spot.level);
    if (!line) return;
    const { scrollTop } = this.scroller;
    if (line.top < scrollTop) this.scroller.scrollTop = Math.max(0, line.top - line.height);
    else if (line.top + line.height > scrollTop + this.height)
      this.scroller.scrollTop = line.top + 2 * line.height - this.height;
  }

  private timeAt(x: number): number {
    return this.span.from + ((x - this.layout.gutter) / this.pixels) * (this.span.to - this.span.from);
  }

  private at(event: { clientX: number; clientY: number }): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private placeAt(x: number, y: number): Place | null {
    if (x < this.layout.gutter) return null;
    const line = lineAt(this.layout, y + this.scroller.scrollTop);
    if (!line) return null;
    const slack = (HIT_SLACK * (this.span.to - this.span.from)) / this.pixels;
    return eventAt(this.timeline.lane(line.track, line.level), this.timeAt(x), slack);
  }

  private onWheel(event: WheelEvent): void {
    const { x } = this.at(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!event.ctrlKey && !event.metaKey && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) {
      this.panBy((sideways * lines) / this.pixels);
    } else if (event.ctrlKey || event.metaKey || this.focusable.contains(document.activeElement)) {
      // A pinch on a touchpad comes as a wheel with Ctrl, in smaller steps.
      const strength = event.ctrlKey && Math.abs(event.deltaY) < 40 ? 6 : 1;
      const by = Math.max(-240, Math.min(240, event.deltaY * lines * strength));
      this.zoomBy(Math.exp(by * WHEEL_ZOOM), Math.max(0, Math.min(1, (x - this.layout.gutter) / this.pixels)));
    } else return;
    event.preventDefault();
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.focusable.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.dragged = 0;
    this.shiftFrom = event.shiftKey ? this.timeAt(this.at(event).x) : null;
  }

  private onMove(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    const { x, y } = this.at(event);
    if (!before) {
      const place = this.placeAt(x, y);
      this.canvas.style.cursor = place ? "pointer" : "grab";
      this.events.onHover(place ? this.timeline.spotOf(place) : null, event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - before.x;
    const dy = event.clientY - before.y;
    this.dragged += Math.abs(dx) + Math.abs(dy);
    const now = { x: event.clientX, y: event.clientY };
    if (this.dragged > CLICK_PIXELS) {
      this.events.onHover(null, 0, 0);
      this.canvas.style.cursor = "grabbing";
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) this.pinch(before, now, other);
      else if (this.shiftFrom !== null) this.drawBand(this.shiftFrom, this.timeAt(x));
      else {
        this.panBy(-dx / this.pixels);
        if (event.pointerType !== "touch") this.scroller.scrollTop -= dy;
      }
    }
    this.pointers.set(event.pointerId, now);
  }

  private onUp(event: PointerEvent): void {
    const { x, y } = this.at(event);
    const known = this.pointers.delete(event.pointerId);
    this.canvas.style.cursor = "grab";
    this.band.hidden = true;
    if (!known) return;
    if (this.shiftFrom !== null && this.dragged > CLICK_PIXELS) {
      const to = this.timeAt(x);
      this.look({ from: Math.min(this.shiftFrom, to), to: Math.max(this.shiftFrom, to) });
    } else if (this.dragged <= CLICK_PIXELS && this.pointers.size === 0) {
      const place = this.placeAt(x, y);
      const spot = place ? this.timeline.spotOf(place) : null;
      this.setCursor(spot);
      this.events.onSelect(spot);
    }
    this.shiftFrom = null;
  }

  private onDoubleClick(event: MouseEvent): void {
    const { x, y } = this.at(event);
    const place = this.placeAt(x, y);
    if (place) this.focusOn(this.timeline.spotOf(place));
  }

  /** Two fingers: what was under them stays under them. */
  private pinch(
    before: { x: number; y: number },
    now: { x: number; y: number },
    other: { x: number; y: number },
  ): void {
    const left = this.canvas.getBoundingClientRect().left + this.layout.gutter;
    const was = Math.max(20, Math.abs(before.x - other.x));
    const is = Math.max(20, Math.abs(now.x - other.x));
    this.zoomBy(was / is, Math.max(0, Math.min(1, (other.x - left) / this.pixels)));
  }

  private drawBand(from: number, to: number): void {
    const x = (time: number): number =>
      this.layout.gutter + ((time - this.span.from) / (this.span.to - this.span.from)) * this.pixels;
    const left = Math.max(this.layout.gutter, Math.min(x(from), x(to)));
    this.band.hidden = false;
    this.band.style.left = `${left}px`;
    this.band.style.width = `${Math.max(x(from), x(to)) - left}px`;
  }

  setCursor(spot: TimelineSpot | null): void {
    this.cursor = spot;
    this.events.onCursor(spot);
    this.redraw();
  }

  /** The cursor goes to the next or previous match, round and round. */
  stepTo(matches: Matches, step: 1 | -1): void {
    const order = inOrder(matches);
    if (order.length === 0) return;
    const start = this.cursor?.start_ns ?? -Infinity;
    const id = this.cursor?.id ?? "";
    const here = order.findIndex(({ track, index }) => spotOfMatch(this.timeline, matches, track, index).id === id);
    const after = order.findIndex((match) => match.start > start);
    const next = here >= 0 ? here + step : step > 0 ? Math.max(0, after) : (after < 0 ? order.length : after) - 1;
    const { track, index } = order[(next + order.length) % order.length]!;
    const spot = spotOfMatch(this.timeline, matches, track, index);
    this.setCursor(spot);
    this.focusOn(spot);
  }

  private onKey(event: KeyboardEvent): void {
    if (event.target !== this.focusable || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!this.act(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** What a key does; false where it means nothing here. */
  private act(key: string): boolean {
    switch (key) {
      case "w":
      case "W":
      case "+":
      case "=":
        this.zoomBy(1 / KEY_ZOOM, this.anchor(), true);
        return true;
      case "s":
      case "S":
      case "-":
        this.zoomBy(KEY_ZOOM, this.anchor(), true);
        return true;
      case "a":
      case "A":
        this.panBy(-KEY_PAN, true);
        return true;
      case "d":
      case "D":
        this.panBy(KEY_PAN, true);
        return true;
      case "0":
      case "Home":
        this.showAll();
        return true;
      case "f":
      case "F":
        if (this.selected ?? this.cursor) this.focusOn((this.selected ?? this.cursor)!);
        return true;
      case "ArrowRight":
      case "ArrowLeft":
      case "ArrowDown":
      case "ArrowUp":
        this.walk(key);
        return true;
      case "Enter":
      case " ":
        if (this.cursor && this.cursor.id === this.selected?.id) this.focusOn(this.cursor);
        else if (this.cursor) this.events.onSelect(this.cursor);
        else this.walk("ArrowRight");
        return true;
      case "Escape":
        if (!this.selected && !this.cursor) return false;
        this.setCursor(null);
        this.events.onSelect(null);
        return true;
      default:
        return false;
    }
  }

  /** Zooming by key goes to the cursor where it is in view. */
  private anchor(): number {
    if (!this.cursor) return 0.5;
    const middle = this.cursor.start_ns + this.cursor.duration_ns / 2;
    const { from, to } = this.settled;
    const share = (middle - from) / (to - from);
    return share >= 0 && share <= 1 ? share : 0.5;
  }

  /** Arrow keys: the neighbours on the line, and the lines above and below. */
  private walk(key: string): void {
    const from = this.cursor ? placeOf(this.timeline, this.cursor) : null;
    let next: Place | null = null;
    if (!from) next = this.firstVisible();
    else if (key === "ArrowRight" || key === "ArrowLeft") next = neighbour(from, key === "ArrowRight" ? 1 : -1);
    else next = this.onOtherLine(from, key === "ArrowDown" ? 1 : -1);
    if (!next) return;
    const spot = this.timeline.spotOf(next);
    this.setCursor(spot);
    this.show(spot);
  }

  private firstVisible(): Place | null {
    for (let y = 1; y < this.height; y += 8) {
      const place = this.placeAt(this.layout.gutter + this.pixels / 2, y);
      if (place) return place;
    }
    return null;
  }

  /** The event nearest in time on the next line that has one. */
  private onOtherLine(from: Place, step: 1 | -1): Place | null {
    const start = from.block.start[from.index]!;
    const stop = from.block.stop[from.index]!;
    const time = Math.max(start, Math.min(stop, (this.span.from + this.span.to) / 2));
    const lines = this.layout.rows.flatMap((row) =>
      Array.from({ length: row.lines }, (_, level) => ({ track: row.track, level })),
    );
    let at = lines.findIndex((line) => line.track === from.lane.track && line.level === from.lane.level);
    for (at += step; at >= 0 && at < lines.length; at += step) {
      const lane = this.timeline.lane(lines[at]!.track, lines[at]!.level);
      const place = eventAt(lane, time, this.timeline.windowNs);
      if (place) return place;
    }
    return null;
  }
}
