/** Ranks over iterations, or over two dimensions of the mesh: darker worked longer than the median rank. A cell opens its rank. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobDimension, JobHeat } from "../../api/types";
import { Card } from "../../components/Card";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { formatPercent } from "../../format/number";
import { themeSignal } from "../../state/theme";
import { byIteration, byMesh, FULL_PERCENT, strength, type Grid } from "./heat";
import { heatParam } from "./params";

interface HeatMapProps {
  heat: JobHeat;
  mesh: JobDimension[];
  ranks: number[];
  onOpen: (rank: number) => void;
}

interface CellRow {
  row: string;
  column: string;
  percent: number | null;
}

const CELLS: Column<CellRow>[] = [
  {
    id: "row",
    header: "Row",
    definition: "Rank, or place in the first dimension.",
    value: (cell) => cell.row,
    width: "120px",
  },
  {
    id: "column",
    header: "Column",
    definition: "Step, or place in the second dimension.",
    value: (cell) => cell.column,
    width: "120px",
  },
  {
    id: "percent",
    header: "Above the median rank",
    definition: "How much longer the rank worked by itself than the median rank of that step.",
    value: (cell) => cell.percent,
    unit: "percent",
    width: "160px",
  },
];

export function HeatMap({ heat, mesh, ranks, onOpen }: HeatMapProps) {
  const layouts = useMemo(() => layoutsOf(mesh), [mesh]);
  const chosen = layouts.find(({ id }) => id === heatParam.value) ?? null;
  const grid = useMemo(
    () => (chosen === null ? byIteration(heat) : byMesh(heat, ranks, chosen.rows, chosen.columns)),
    [heat, ranks, chosen],
  );
  const cells = useMemo(
    () =>
      grid.values.map(
        (percent, index): CellRow => ({
          row: grid.rows[Math.floor(index / grid.columns.length)]!,
          column: grid.columns[index % grid.columns.length]!,
          percent,
        }),
      ),
    [grid],
  );
  const actions = layouts.length > 0 && (
    <label class="picker">
      <span>Layout</span>
      <select
        value={chosen?.id ?? ""}
        data-testid="heat-layout"
        onChange={(event) => {
          heatParam.value = event.currentTarget.value || null;
        }}
      >
        <option value="">ranks × steps</option>
        {layouts.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Card title="Own work of each rank against the median" actions={actions} testId="heat-map">
      <Drawing name="Own work of each rank against the median" columns={CELLS} rows={cells}>
        <Cells grid={grid} onOpen={onOpen} />
      </Drawing>
      <p class="heat-scale muted small">
        <span>0 %</span>
        <span class="heat-scale-bar" aria-hidden="true" />
        <span>{FULL_PERCENT} % longer</span>
      </p>
    </Card>
  );
}

interface Layout {
  id: string;
  title: string;
  rows: JobDimension;
  columns: JobDimension;
}

function layoutsOf(mesh: readonly JobDimension[]): Layout[] {
  const large = mesh.filter(({ size }) => size > 1);
  return large.flatMap((rows, index) =>
    large.slice(index + 1).map((columns) => ({
      id: `${rows.name}/${columns.name}`,
      title: `${rows.name} × ${columns.name}`,
      rows,
      columns,
    })),
  );
}

const LEFT = 64;
const TOP = 20;

function Cells({ grid, onOpen }: { grid: Grid; onOpen: (rank: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [under, setUnder] = useState<number | null>(null);
  const theme = themeSignal.value;
  const high = Math.min(22, Math.max(1, Math.floor(440 / Math.max(1, grid.rows.length))));
  const height = TOP + high * grid.rows.length;
  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme changes the colours that are read from the styles.
  useEffect(() => {
    if (width > LEFT) paint(canvas.current!, grid, width, height, high);
  }, [grid, width, height, high, theme]);
  const cellAt = (event: MouseEvent): number | null => {
    const column = Math.floor(((event.offsetX - LEFT) * grid.columns.length) / (width - LEFT));
    const row = Math.floor((event.offsetY - TOP) / high);
    const inside = column >= 0 && column < grid.columns.length && row >= 0 && row < grid.rows.length;
    return inside ? row * grid.columns.length + column : null;
  };
  const open = (event: MouseEvent): void => {
    const cell = cellAt(event);
    if (cell !== null && grid.values[cell] !== null) onOpen(grid.ranks[cell]!);
  };
  const value = under === null ? null : grid.values[under]!;
  return (
    <>
      <canvas
        ref={canvas}
        class="heat-cells"
        role="img"
        aria-label={`${grid.rowTitle} by ${grid.columnTitle}: ${grid.values.length} cells; the menu shows their values as a table.`}
        onMouseMove={(event) => setUnder(cellAt(event))}
        onMouseLeave={() => setUnder(null)}
        onClick={open}
      />
      <p class="heat-under small muted" data-testid="heat-under">
        {under === null
          ? "\u00a0"
          : `${grid.rowTitle} ${grid.rows[Math.floor(under / grid.columns.length)]}, ${grid.columnTitle} ${grid.columns[under % grid.columns.length]}: ${
              value === null ? "not recorded" : `${formatPercent(value)} above the median rank`
            }`}
      </p>
    </>
  );
}

function paint(canvas: HTMLCanvasElement, grid: Grid, width: number, height: number, high: number): void {
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
  const wide = (width - LEFT) / grid.columns.length;
  const gap = high > 6 && wide > 6 ? 1 : 0;
  grid.values.forEach((value, index) => {
    const x = LEFT + (index % grid.columns.length) * wide;
    const y = TOP + Math.floor(index / grid.columns.length) * high;
    context.globalAlpha = 1;
    context.fillStyle = colour(value === null ? "--surface" : "--surface-2");
    context.fillRect(x, y, wide - gap, high - gap);
    if (value === null || strength(value) === 0) return;
    context.globalAlpha = strength(value);
    context.fillStyle = colour("--accent");
    context.fillRect(x, y, wide - gap, high - gap);
  });
  context.globalAlpha = 1;
  context.fillStyle = colour("--muted");
  context.textAlign = "right";
  eachWithRoom(grid.rows, high, 13, (text, index) =>
    context.fillText(text, LEFT - 6, TOP + (index + 0.5) * high, LEFT - 8),
  );
  context.textAlign = "center";
  eachWithRoom(grid.columns, wide, 34, (text, index) => context.fillText(text, LEFT + (index + 0.5) * wide, TOP / 2));
}

/** As many of the labels as have room, evenly spread. */
function eachWithRoom(
  labels: readonly string[],
  step: number,
  room: number,
  draw: (text: string, index: number) => void,
) {
  const every = Math.max(1, Math.ceil(room / step));
  labels.forEach((text, index) => {
    if (index % every === 0) draw(text, index);
  });
}
