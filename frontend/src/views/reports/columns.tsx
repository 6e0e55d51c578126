/** A report's columns as those of a table: the unit from the report, the width from what the cells hold. */
import type { ReportColumn, ReportPage } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { Verdict } from "../../components/Verdict";

export type ReportCell = ReportPage["rows"][number][number];

/** A row with its place in the report, which is its name: reports have no other. */
export interface ReportRow {
  place: number;
  cells: ReportCell[];
}

/** Fewer than this many different texts are offered as choices. */
const MOST_CHOICES = 9;
const CHARACTER_PX = 7.2;
const PADDING_PX = 34;
const [LEAST_PX, MOST_PX] = [84, 340];

export function rowsOf(page: ReportPage): ReportRow[] {
  return page.rows.map((cells, place) => ({ place, cells }));
}

export function columnsOf(page: ReportPage): Column<ReportRow>[] {
  return page.columns.map((column, index) => columnOf(column, index, page.rows));
}

function columnOf(column: ReportColumn, index: number, rows: ReportPage["rows"]): Column<ReportRow> {
  const made: Column<ReportRow> = {
    id: column.key,
    key: column.key,
    header: column.label,
    definition: column.meaning,
    value: ({ cells }) => cells[index] ?? null,
    width: `${widthOf(column, index, rows)}px`,
    missing: column.verdict ? "unknown" : "–",
  };
  if (column.unit !== "text") return { ...made, unit: column.unit };
  const texts = new Set<ReportCell>();
  for (const cells of rows) {
    texts.add(cells[index] ?? null);
    if (texts.size >= MOST_CHOICES) break;
  }
  if (column.verdict) {
    made.cell = ({ cells }) => <Verdict value={asVerdict(cells[index] ?? null)} />;
  }
  return texts.size < MOST_CHOICES && texts.size < rows.length ? { ...made, filter: "choice" } : made;
}

const asVerdict = (cell: ReportCell): "yes" | "no" | "unknown" => (cell === "yes" || cell === "no" ? cell : "unknown");

/** Wide enough for the heading and for most texts; numbers are short once they have a unit. */
function widthOf(column: ReportColumn, index: number, rows: ReportPage["rows"]): number {
  let longest = column.label.length;
  if (column.unit === "text") {
    for (const cells of rows.slice(0, 200)) longest = Math.max(longest, String(cells[index] ?? "").length);
  }
  return Math.round(Math.min(MOST_PX, Math.max(LEAST_PX, longest * CHARACTER_PX + PADDING_PX)));
}
