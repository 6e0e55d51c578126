/** One cell of a table: the column's own drawing, or its value with the unit; a bar behind a share. */
import type { ComponentChildren } from "preact";
import type { Verdict as VerdictValue } from "../../api/types";
import { exactNs, formatNsDifference } from "../../format/duration";
import { CutName, isCut } from "../CutName";
import { Value } from "../Value";
import { Verdict } from "../Verdict";
import type { Column } from "./columns";

interface CellProps<Row> {
  column: Column<Row>;
  row: Row;
  /** Names the rows: a text in it is cut in the middle. */
  first: boolean;
  /** Set on the first cell of rows that can be selected: its content becomes the button that keyboards reach. */
  onSelect: ((row: Row) => void) | undefined;
  lead: ComponentChildren;
  /** The value that fills the cell's bar; null for a column without bars. */
  whole: number | null;
}

export function Cell<Row>({ column, row, first, onSelect, lead, whole }: CellProps<Row>) {
  const value = column.value(row);
  let content = column.cell?.(row);
  if (content === undefined) {
    if (column.signed && typeof value === "number")
      content = (
        <span class="num" title={exactNs(value)}>
          {formatNsDifference(value)}
        </span>
      );
    else if (column.unit)
      content = <Value value={value as number | null} unit={column.unit} missing={column.missing ?? "unknown"} />;
    else if (value === null) content = <span class="missing">{column.missing ?? "unknown"}</span>;
    else if (column.verdict) content = <Verdict value={value as VerdictValue} />;
    else content = value;
  }
  let label: string | undefined;
  if (first && typeof content === "string") {
    // The parts of a cut name would be read as two words.
    label = isCut(content) ? content : undefined;
    content = <CutName name={content} />;
  }
  if (onSelect) {
    content = (
      <button
        type="button"
        class="link"
        aria-label={label}
        onClick={(event) => {
          event.stopPropagation();
          onSelect(row);
        }}
      >
        {content}
      </button>
    );
  }
  if (lead !== undefined) {
    content = (
      <div class="cell-lead">
        {lead}
        {content}
      </div>
    );
  }
  const title = column.unit || value === null || value === "" ? undefined : String(value);
  const bar = whole && typeof value === "number" && value > 0 ? `${Math.min(100, (100 * value) / whole)}%` : undefined;
  return (
    <td class={column.unit ? "right" : ""} title={title} style={bar && { "--bar": bar }}>
      {content}
    </td>
  );
}
