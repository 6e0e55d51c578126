/** The values of an axis in, pixels and the labels that have room out. Pure. */

export interface Tick {
  value: number;
  label: string;
}

/** From the lower (left) to the upper (right) end. */
export type Span = readonly [from: number, to: number];

export interface Axis {
  span: Span;
  logarithmic?: boolean;
  /** The labels of a part of the axis that takes so many pixels; one without text is a line alone. */
  ticks: (shown: Span, pixels: number) => Tick[];
  /** Its name, next to it. */
  title?: string;
  /** Whether labels are turned. */
  turned?: boolean;
}

export interface Scale {
  /** Pixels from the left or from the top. */
  at: (value: number) => number;
  valueAt: (pixel: number) => number;
}

/** About one character of a label, in pixels. */
const CHARACTER_PX = 6.8;
/** Between two labels side by side. */
const ROOM_PX = 10;
/** Between labels above each other, at most and at least. */
const FARTHEST_PX = 60;
const NEAREST_PX = 24;
/** Turned labels rise to the right. */
export const TURNED_DEGREES = 30;

export const widthOf = (label: string): number => CHARACTER_PX * label.length;

/** How far a turned label reaches to the left and down. */
export const turnedSize = (label: string): [left: number, down: number] => {
  const angle = (TURNED_DEGREES / 180) * Math.PI;
  return [Math.cos(angle) * widthOf(label), Math.sin(angle) * widthOf(label)];
};

const widest = (labels: readonly string[]): number => Math.max(0, ...labels.map(widthOf));

/** `reversed` counts pixels from the upper end, as a vertical axis does. */
export function scaleOf({ logarithmic = false }: Axis, [from, to]: Span, pixels: number, reversed = false): Scale {
  const [into, out] = logarithmic ? [Math.log, Math.exp] : [Number, Number];
  const [low, high] = [into(from), into(to)];
  const length = high - low || 1;
  const turn = (share: number): number => (reversed ? 1 - share : share);
  return {
    at: (value) => pixels * turn((into(value) - low) / length),
    valueAt: (pixel) => out(low + length * turn(pixel / Math.max(1, pixels))),
  };
}

/** The least of 1, 2 and 5 times a power of ten that is at least `least`. */
export function roundStep(least: number, times: readonly number[] = [1, 2, 5]): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return times.map((one) => one * power).find((step) => step >= least) ?? 10 * power;
}

/** The multiples of `step` in a span. */
export function multiples(step: number, [from, to]: Span): number[] {
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => (first + place) * step);
}

/** From 0 to a multiple of a round step that is above all `values` by as little as can be in `height` pixels. */
export function upwards(values: readonly number[], height: number, label: (value: number) => string): Axis {
  const highest = Math.max(0, ...values) || 1;
  const fewest = Math.max(1, Math.floor(height / FARTHEST_PX));
  const most = Math.max(fewest, Math.floor(height / NEAREST_PX));
  const axes = Array.from({ length: most - fewest + 1 }, (_, more) =>
    stepped(highest, roundStep(highest / (fewest + more), [1, 2, 2.5, 5]), label),
  );
  return axes.reduce((best, axis) => (axis.span[1] < best.span[1] ? axis : best));
}

/** The same with a given step. */
export function stepped(highest: number, step: number, label: (value: number) => string): Axis {
  return {
    span: [0, Math.ceil(highest / step - 1e-9) * step],
    ticks: (shown) => multiples(step, shown).map((value) => ({ value, label: label(value) })),
  };
}

/** Values from left to right, labelled at round ones. */
export function along(span: Span, label: (value: number) => string): Axis {
  return {
    span,
    ticks: ([from, to], pixels) => {
      const room = widest([label(from), label(to)]) + 3 * ROOM_PX;
      const step = roundStep(((to - from) * room) / Math.max(1, pixels));
      return multiples(step, [from, to]).map((value) => ({ value, label: label(value) }));
    },
  };
}

/** A place of width 1 for each label, the first around 0. */
export function places(labels: readonly string[], turned = false): Axis {
  const least = turned ? 18 : widest(labels) + ROOM_PX;
  return {
    span: [-0.5, Math.max(labels.length, 1) - 0.5],
    turned,
    ticks: ([from, to], pixels) => {
      const every = Math.max(1, Math.ceil((least * (to - from)) / Math.max(1, pixels)));
      return labels
        .map((label, value) => ({ value, label }))
        .filter(({ value }) => value % every === 0 && value >= from && value <= to);
    },
  };
}

/** Whole powers of ten around the values. */
export function decadesAround(values: readonly number[]): Span {
  if (values.length === 0) return [1, 10];
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.05));
  return [low, high > low ? high : low * 10];
}

/** A logarithmic axis over whole powers of ten, each of which has a line; those have labels that have room. */
export function decades(span: Span, label: (value: number) => string, upright = false): Axis {
  return {
    span,
    logarithmic: true,
    ticks: ([from, to], pixels) => {
      const first = Math.round(Math.log10(from));
      const powers = Array.from(
        { length: Math.round(Math.log10(to)) - first + 1 },
        (_, place) => 10 ** (first + place),
      );
      const least = upright ? NEAREST_PX : widest(powers.map(label)) + ROOM_PX;
      const every = Math.max(1, Math.ceil((least * (powers.length - 1)) / Math.max(1, pixels)));
      return powers.map((value, place) => ({ value, label: place % every === 0 ? label(value) : "" }));
    },
  };
}

export interface Label {
  text: string;
  /** Where it ends, in pixels, and its base line. */
  right: number;
  y: number;
}

/** Pixels between the base lines of labels above each other. */
const LABEL_LINE_PX = 14;

/** The base line of each label, moved up from those below that it would overlap. */
export function apart(labels: readonly Label[]): number[] {
  const result = labels.map(({ y }) => y);
  const order = labels.map((_, index) => index).sort((one, other) => labels[other]!.y - labels[one]!.y);
  const left = (index: number): number => labels[index]!.right - widthOf(labels[index]!.text);
  order.forEach((index, rank) => {
    const below = order
      .slice(0, rank)
      .filter((other) => left(index) < labels[other]!.right && left(other) < labels[index]!.right);
    for (const other of below.sort((one, another) => result[another]! - result[one]!)) {
      if (Math.abs(result[index]! - result[other]!) < LABEL_LINE_PX) result[index] = result[other]! - LABEL_LINE_PX;
    }
  });
  return result;
}
