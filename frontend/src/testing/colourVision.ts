/**
 * Colours as hex text in; contrast, and how different two look to people with each kind of colour vision, out.
 *
 * Contrast: WCAG 2.2, "contrast ratio". Difference: CIEDE2000 (Sharma, Wu, Dalal 2005); 1 can just be seen side by side.
 * Colour blindness: the matrices for full severity of Machado, Oliveira, Fernandes 2009, on linear RGB.
 */
type Triple = readonly [number, number, number];
type Matrix = readonly [Triple, Triple, Triple];

export const VISIONS: Readonly<Record<string, Matrix>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const TO_XYZ: Matrix = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];
const WHITE: Triple = [0.95047, 1, 1.08883];

const times = (matrix: Matrix, [x, y, z]: Triple): Triple => {
  const [a, b, c] = matrix.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return [a!, b!, c!];
};

/** `#rrggbb` as linear RGB, each 0 to 1. */
function linear(hex: string): Triple {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return [r!, g!, b!];
}

/** WCAG's contrast ratio, 1 to 21. */
export function contrast(one: string, other: string): number {
  const [low, high] = [one, other].map((hex) => times(TO_XYZ, linear(hex))[1]).sort((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

function lab(rgb: Triple): Triple {
  const clipped = rgb.map((value) => Math.min(1, Math.max(0, value))) as unknown as Triple;
  const [fx, fy, fz] = times(TO_XYZ, clipped).map((value, index) => {
    const ratio = value / WHITE[index]!;
    return ratio > 216 / 24389 ? Math.cbrt(ratio) : ((24389 / 27) * ratio + 16) / 116;
  });
  return [116 * fy! - 16, 500 * (fx! - fy!), 200 * (fy! - fz!)];
}

/** CIEDE2000 between two colours as seen with `vision`. */
export function difference(one: string, other: string, vision: string): number {
  const matrix = VISIONS[vision]!;
  return ciede2000(lab(times(matrix, linear(one))), lab(times(matrix, linear(other))));
}

/** Lightness (0 to 100), chroma and hue (degrees) of CIELAB. */
export function lightnessChromaHue(hex: string): Triple {
  const [l, a, b] = lab(linear(hex));
  return [l, Math.hypot(a, b), hue(b, a)];
}

const radians = (degrees: number): number => (degrees * Math.PI) / 180;
const hue = (b: number, a: number): number => ((Math.atan2(b, a) * 180) / Math.PI + 360) % 360;

function ciede2000([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const mean7 = ((Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2) ** 7;
  const stretch = 1 + 0.5 * (1 - Math.sqrt(mean7 / (mean7 + 25 ** 7)));
  const [c1, c2] = [Math.hypot(stretch * a1, b1), Math.hypot(stretch * a2, b2)];
  const [h1, h2] = [hue(b1, stretch * a1), hue(b2, stretch * a2)];
  const turn = h2 - h1 > 180 ? h2 - h1 - 360 : h2 - h1 < -180 ? h2 - h1 + 360 : h2 - h1;
  const dHue = 2 * Math.sqrt(c1 * c2) * Math.sin(radians(turn / 2));
  const [lightness, chroma] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const sum = h1 + h2;
  const angle = Math.abs(h1 - h2) <= 180 ? sum / 2 : sum < 360 ? (sum + 360) / 2 : (sum - 360) / 2;
  const t =
    1 -
    0.17 * Math.cos(radians(angle - 30)) +
    0.24 * Math.cos(radians(2 * angle)) +
    0.32 * Math.cos(radians(3 * angle + 6)) -
    0.2 * Math.cos(radians(4 * angle - 63));
  const sl = 1 + (0.015 * (lightness - 50) ** 2) / Math.sqrt(20 + (lightness - 50) ** 2);
  const [sc, sh] = [1 + 0.045 * chroma, 1 + 0.015 * chroma * t];
  const rotation =
    -2 *
    Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7)) *
    Math.sin(radians(60 * Math.exp(-(((angle - 275) / 25) ** 2))));
  const [l, c, h] = [(l2 - l1) / sl, (c2 - c1) / sc, dHue / sh];
  return Math.sqrt(l * l + c * c + h * h + rotation * c * h);
}
