/** The drawing as a picture: the visible stretch of time, all rows whether they are scrolled into view or not, with title and labels. */
import { formatNs } from "../../format/duration";
import { draw, drawRuler, RULER_HEIGHT, shorten, type Scene } from "./draw";

const SCALE = 2;
const PADDING = 14;
const TITLE = 44;

export async function pictureOf(scene: Scene, run: string): Promise<Blob> {
  const { layout, theme, timeline, span } = scene;
  const canvas = document.createElement("canvas");
  const height = TITLE + RULER_HEIGHT + layout.height + PADDING;
  canvas.width = (scene.width + 2 * PADDING) * SCALE;
  canvas.height = height * SCALE;
  const context = canvas.getContext("2d")!;
  const at = (x: number, y: number): void => context.setTransform(SCALE, 0, 0, SCALE, x * SCALE, y * SCALE);
  at(0, 0);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, canvas.width, canvas.height);
  at(PADDING, TITLE);
  drawRuler(context, scene, timeline.page.iteration);
  at(PADDING, TITLE + RULER_HEIGHT);
  draw(context, { ...scene, height: layout.height, scrollTop: 0, cursor: null });
  context.textBaseline = "top";
  for (const row of layout.rows) {
    const { label, detail } = timeline.tracks[row.track]!;
    const room = layout.gutter > 0 ? layout.gutter - 8 : scene.width;
    context.fillStyle = theme.text;
    context.fillText(shorten(label, false, room, context.measureText(label).width), 2, row.top + 3);
    if (layout.gutter === 0 || row.height <= 32) continue;
    context.fillStyle = theme.muted;
    context.fillText(shorten(detail, false, room, context.measureText(detail).width), 2, row.top + 17);
  }
  at(PADDING, PADDING);
  context.fillStyle = theme.text;
  context.fillText(
    `Timeline of iteration ${timeline.page.iteration.number}, ${run}: ${formatNs(span.from)} to ${formatNs(span.to)}`,
    0,
    0,
  );
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png"),
  );
}
