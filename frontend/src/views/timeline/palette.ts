/** The colours of a theme as the canvas takes them: per kind of event its fill, paler fills for what matters less, and its text. */
import type { EventKind } from "../../api/types";
import { colourProperty } from "../../format/colours";

export interface Palette {
  /** By how much is covered: step 1 to 4 at index 0 to 3. */
  own: string[];
  /** Work of another iteration, or what a search did not find. */
  pale: string[];
  ownText: string;
  paleText: string;
}

export interface Theme {
  of: Record<string, Palette>;
  text: string;
  muted: string;
  line: string;
  lineSoft: string;
  surface: string;
  page: string;
  accent: string;
  bad: string;
  font: string;
}

const PALE = 0.3;
/** How full a colour is where little of a pixel is covered, and where all of it is. */
const SHARES = [0.25, 0.5, 0.75, 1];
type Rgb = readonly [red: number, green: number, blue: number];

/** `read` gives the value of a custom property. */
export function themeOf(read: (property: string) => string, kinds: readonly EventKind[], font: string): Theme {
  const surface = rgb(read("--surface"));
  const of: Record<string, Palette> = {};
  for (const kind of kinds) {
    const full = rgb(read(colourProperty(kind, 0, "timeline")));
    const pale = mix(full, surface, PALE);
    of[kind] = {
      own: covers(full, surface),
      pale: covers(pale, surface),
      ownText: textOn(full),
      paleText: textOn(pale),
    };
  }
  return {
    of,
    text: read("--text"),
    muted: read("--muted"),
    line: read("--line"),
    lineSoft: read("--line-soft"),
    surface: read("--surface"),
    page: read("--page"),
    accent: read("--accent"),
    bad: read("--bad"),
    font,
  };
}

const covers = (full: Rgb, surface: Rgb): string[] => SHARES.map((share) => css(mix(full, surface, share)));

/** "#1f5fbf" or "rgb(...)" as numbers; grey for anything else. */
export function rgb(text: string): Rgb {
  const hex = /^#([0-9a-f]{6})$/i.exec(text.trim());
  if (hex) return [0, 2, 4].map((at) => parseInt(hex[1]!.slice(at, at + 2), 16)) as unknown as Rgb;
  const numbers =
    /^rgba?\(([^)]*)\)$/
      .exec(text.trim())?.[1]
      ?.split(/[\s,/]+/)
      .map(Number) ?? [];
  return numbers.length >= 3 && numbers.every(Number.isFinite)
    ? (numbers.slice(0, 3) as unknown as Rgb)
    : [128, 128, 128];
}

const mix = (a: Rgb, b: Rgb, share: number): Rgb =>
  [0, 1, 2].map((at) => Math.round(a[at]! * share + b[at]! * (1 - share))) as unknown as Rgb;

const css = (colour: Rgb): string => `rgb(${colour.join(",")})`;

/** Black or white, whichever has the greater contrast (WCAG relative luminance). */
export function textOn(colour: Rgb): string {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#10151d" : "#ffffff";
}
