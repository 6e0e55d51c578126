/** A recorded step of chosen ranks under each other on aligned clocks; the same collective is joined by a line. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { DistributedPage, RankLinesPage } from "../../api/types";
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { Card } from "../../components/Card";
import { ResourceView } from "../../features/ResourceView";
import { formatNs } from "../../format/duration";
import { profileParam } from "../../state/sharedParams";
import { themeSignal } from "../../state/theme";
import { linesParam, stepParam } from "./params";

export function RankLines({ data }: { data: DistributedPage }) {
  const ranks = linesParam.value ?? data.shown_ranks.join(",");
  const resource = useResource("rank_lines", {
    ...profileQuery(profileParam.value, null),
    ranks,
    step: stepParam.value === null ? null : Number(stepParam.value),
  });
  return (
    <Card
      title="The same step on several ranks"
      testId="rank-lines"
      actions={
        <label class="picker">
          <span>Ranks</span>
          <input
            type="text"
            value={ranks}
            data-testid="rank-lines-ranks"
            onChange={(event) => {
              linesParam.value = event.currentTarget.value.replace(/[^\d,]/g, "") || null;
            }}
          />
        </label>
      }
    >
      <ResourceView resource={resource}>{(lines) => <Lines lines={lines} />}</ResourceView>
    </Card>
  );
}

const ROW = 46;
const LEFT = 64;
const TOP = 6;
/** Pixels below which five times have no room. */
const NARROW = 460;

function Lines({ lines }: { lines: RankLinesPage }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [under, setUnder] = useState<string | null>(null);
  const theme = themeSignal.value;
  const height = TOP + ROW * lines.lines.length + 18;
  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme changes the colours that are read from the styles.
  useEffect(() => {
    if (width > LEFT) paint(canvas.current!, lines, width, height);
  }, [lines, width, height, theme]);
  return (
    <>
      <canvas
        ref={canvas}
        class="rank-lines"
        role="img"
        aria-label={`Step ${lines.step} of ranks ${lines.lines.map(({ rank }) => rank).join(", ")}, ${formatNs(lines.length_ns)} long.`}
        onMouseMove={(event) => setUnder(textAt(lines, event.offsetX, event.offsetY, width))}
        onMouseLeave={() => setUnder(null)}
      />
      <p class="small muted" data-testid="rank-lines-under">
        {under ?? `Step ${lines.step}, ${formatNs(lines.length_ns)} as recorded. ${lines.clocks}`}
      </p>
    </>
  );
}

function textAt(lines: RankLinesPage, x: number, y: number, width: number): string | null {
  const line = lines.lines[Math.floor((y - TOP) / ROW)];
  if (!line || x < LEFT) return null;
  const at = ((x - LEFT) / (width - LEFT)) * lines.length_ns;
  const index = line.start_ns.findIndex((start, i) => start <= at && at < start + line.duration_ns[i]!);
  if (index < 0) return `Rank ${line.rank}: between collectives`;
  return `Rank ${line.rank}: ${lines.names[line.name[index]!]}, ${formatNs(line.duration_ns[index]!)}, of which ${formatNs(line.waiting_ns[index]!)} waiting`;
}

function paint(canvas: HTMLCanvasElement, lines: RankLinesPage, width: number, height: number): void {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const scale = (width - LEFT) / Math.max(1, lines.length_ns);
  const ends = new Map<number, [x: number, y: number][]>();
  lines.lines.forEach((line, row) => {
    const y = TOP + row * ROW;
    context.fillStyle = colour("--muted");
    context.textAlign = "right";
    context.fillText(`Rank ${line.rank}`, LEFT - 6, y + 12);
    let after = line.begin_ns;
    line.start_ns.forEach((start, index) => {
      const x = LEFT + start * scale;
      // How much of the time since the last collective the GPU worked; not where in it.
      const work = Math.min(line.work_ns[index]!, Math.max(0, start - after));
      context.fillStyle = colour("--c-s10");
      context.fillRect(x - work * scale, y + 4, work * scale, 16);
      const waited = line.waiting_ns[index]!;
      const whole = line.duration_ns[index]!;
      context.fillStyle = colour("--c-s4");
      context.fillRect(x, y + 4, Math.max(0.5, waited * scale), 16);
      context.fillStyle = colour("--c-communication");
      context.fillRect(x + waited * scale, y + 4, Math.max(0.5, (whole - waited) * scale), 16);
      after = Math.max(after, start + whole);
      const match = line.match[index]!;
      if (match >= 0) {
        if (!ends.has(match)) ends.set(match, []);
        ends.get(match)!.push([x, y]);
      }
    });
  });
  context.strokeStyle = colour("--muted");
  context.globalAlpha = 0.5;
  context.lineWidth = 0.8;
  for (const points of ends.values()) {
    for (let index = 1; index < points.length; index += 1) {
      context.beginPath();
      context.moveTo(points[index - 1]![0], points[index - 1]![1] + 20);
      context.lineTo(points[index]![0], points[index]![1] + 4);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  context.fillStyle = colour("--muted");
  for (const part of width < NARROW ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    context.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
    context.fillText(formatNs(part * lines.length_ns), LEFT + part * (width - LEFT), height - 8);
  }
}
