/**
 * A drawn element in; a PNG of it with its title, at twice its size and in the theme of the page, out. The browser itself draws: a
 * copy of the element goes, with the style sheet of the page, into an SVG picture, and that onto a canvas. Text comes from traces:
 * it is serialised as text, and a picture runs no script and loads nothing.
 */

export interface Caption {
  title: string;
  /** What the picture is of: the run, the range. */
  under: string;
}

const SCALE = 2;
const PADDING = 16;
const XHTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";

/** Rejects where the browser lets no canvas hold such a picture, or none that large. */
export async function pictureOf(drawn: HTMLElement, caption: Caption): Promise<Blob> {
  const width = drawn.clientWidth + 2 * PADDING;
  const sheet = copyOf(drawn, caption);
  const height = heightOf(sheet, width);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(sheet, width, height))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * SCALE;
  canvas.height = height * SCALE;
  const context = canvas.getContext("2d")!;
  context.scale(SCALE, SCALE);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png"),
  );
}

function copyOf(drawn: HTMLElement, { title, under }: Caption): HTMLElement {
  const copy = drawn.cloneNode(true) as HTMLElement;
  for (const unwanted of copy.querySelectorAll(".download, .hidden, .tooltip, .chart-tip, .chart-band, .chart-at"))
    unwanted.remove();
  const sheet = document.createElement("div");
  sheet.className = "picture";
  const head = document.createElement("h2");
  head.textContent = title;
  const below = document.createElement("p");
  below.className = "muted";
  below.textContent = under;
  sheet.append(head, below, copy);
  return sheet;
}

/** The height (pixels) that the sheet takes when it is this wide. */
function heightOf(sheet: HTMLElement, width: number): number {
  sheet.style.width = `${width}px`;
  const aside = document.createElement("div");
  aside.style.cssText = "position: absolute; top: 0; left: -99999px;";
  aside.append(sheet);
  document.body.append(aside);
  const height = Math.ceil(sheet.getBoundingClientRect().height);
  aside.remove();
  return height;
}

function svgText(sheet: HTMLElement, width: number, height: number): string {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  // The colours hang on the root element, which is the picture's own here.
  svg.setAttribute("data-theme", document.documentElement.dataset["theme"] ?? "light");
  const style = document.createElementNS(XHTML, "style");
  style.textContent = [...document.querySelectorAll("style")].map((one) => one.textContent).join("\n");
  const box = document.createElementNS(SVG, "foreignObject");
  box.setAttribute("width", "100%");
  box.setAttribute("height", "100%");
  box.append(style, sheet);
  svg.append(box);
  return legal(new XMLSerializer().serializeToString(svg));
}

/** Names may hold characters that XML and addresses cannot. */
function legal(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what XML cannot hold is what is looked for.
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");
}
