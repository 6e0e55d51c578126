/** The cells of the heat map: ranks over iterations, or over two dimensions of the mesh; no drawing here. */
import type { JobDimension, JobHeat } from "../../api/types";

export interface Grid {
  rows: string[];
  columns: string[];
  rowTitle: string;
  columnTitle: string;
  /** Row by row: percent above the median rank; null is not recorded. */
  values: (number | null)[];
  /** A rank of each cell, to open it. */
  ranks: number[];
}

export const span = (first: number, last: number): string => (first === last ? `${first}` : `${first}–${last}`);

/** Ranks over the iterations that they recorded. */
export function byIteration(heat: JobHeat): Grid {
  return {
    rows: heat.first.map((first, index) => span(first, heat.last[index]!)),
    columns: heat.iterations.map(String),
    rowTitle: "Rank",
    columnTitle: "Step",
    values: heat.percent,
    ranks: heat.first.flatMap((rank) => heat.iterations.map(() => rank)),
  };
}

/** Mean over the iterations of each rank, laid out by two dimensions of the mesh; ranks that differ only in other dimensions share a cell, which shows the worst. */
export function byMesh(heat: JobHeat, rankNumbers: readonly number[], rows: JobDimension, columns: JobDimension): Grid {
  const values = new Array<number | null>(rows.size * columns.size).fill(null);
  const ranks = new Array<number>(values.length).fill(0);
  rankNumbers.forEach((rank, index) => {
    const mean = heat.of_rank[index] ?? null;
    const [row, column] = [rows.place[index]!, columns.place[index]!];
    if (mean === null || row < 0 || column < 0) return;
    const cell = row * columns.size + column;
    if (values[cell] === null || mean > values[cell]!) {
      values[cell] = mean;
      ranks[cell] = rank;
    }
  });
  return {
    rows: Array.from({ length: rows.size }, (_, index) => String(index)),
    columns: Array.from({ length: columns.size }, (_, index) => String(index)),
    rowTitle: rows.name,
    columnTitle: columns.name,
    values,
    ranks,
  };
}

export const FULL_PERCENT = 25;

/** How strong a cell is drawn, 0 to 1: nothing below the median rank, full at `FULL_PERCENT` above it. */
export const strength = (percent: number): number => Math.min(1, Math.max(0, percent / FULL_PERCENT));
