/** Rows and columns in; a table out that sorts, filters by column, exports what it shows and scrolls in its own box. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { DownloadMenu } from "../export/DownloadMenu";
import { toCsv, toJson, toTsv } from "../export/formats";
import { useSlot } from "../export/slot";
import { Cell } from "./Cell";
import type { Column } from "./columns";
import { TableBar } from "./TableBar";
import { TableHead } from "./TableHead";
import { useFill } from "./useFill";
import { useTable, type Table, type TableContent } from "./useTable";
import { useVirtualRows } from "./useVirtualRows";

interface RowProps<Row> {
  onSelect?: (row: Row) => void;
  /** Which rows lead somewhere; all when left out. */
  selectable?: (row: Row) => boolean;
  /** What stands before the content of a row's first cell. */
  lead?: (row: Row) => ComponentChildren;
}

export interface DataTableProps<Row> extends TableContent<Row>, RowProps<Row> {
  /** What the table holds, for its caption and the names of its files. */
  name: string;
  rowId: (row: Row) => string;
  selected?: string | null;
  /** The rows there are on the server, when only the first were sent. */
  totalRows?: number;
  /** What stands next to the number of rows. */
  actions?: ComponentChildren;
  /** The main table of its page: as high as the window below it. */
  fill?: boolean;
  testId?: string;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { name, rows, rowId, selected = null, totalRows = rows.length, plain = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const table = useTable(props, box);
  const { all, columns, sorted, shown } = table;
  const virtual = useVirtualRows(box, shown.length);
  useFill(box, props.fill ?? false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: rowId is a new function in each rendering; the rows say which ids there are.
  const selectedIndex = useMemo(
    () => (selected === null ? -1 : shown.findIndex((row) => rowId(row) === selected)),
    [selected, shown],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another row is selected, or it comes into the table: sorting and a newer recording should not move the box.
  useEffect(() => {
    if (selectedIndex >= 0) virtual.scrollTo(selectedIndex);
  }, [selected, selectedIndex >= 0]);
  const download = plain
    ? { name, csv: () => toCsv(all, sorted), tsv: () => toTsv(all, sorted), json: () => toJson(all, sorted) }
    : null;
  const inCard = useSlot(download);
  const bar = { name, table, rows: rows.length, totalRows, options: props.options, actions: props.actions };

  return (
    <div class="table" data-testid={props.testId}>
      {download && !inCard && <DownloadMenu downloads={() => [download]} />}
      {!plain && <TableBar {...bar} folds={props.arrange !== undefined} />}
      <div class="table-box" ref={box} tabIndex={0} role="region" aria-label={`${name}, scrollable`}>
        <table aria-rowcount={shown.length + 1} style={{ minWidth: `calc(${columns.map(widthOf).join(" + ")})` }}>
          <caption class="hidden">{name}</caption>
          <colgroup>
            {columns.map((column, place) => (
              // The names take what the other columns leave.
              <col key={column.id} style={place === 0 ? undefined : { width: column.width }} />
            ))}
          </colgroup>
          <TableHead table={table} />
          <TableBody {...{ ...props, table, virtual, selectedIndex }} />
        </table>
        {shown.length === 0 && (
          <p class="table-empty">{rows.length === 0 ? "Nothing here." : "No row fits the filters."}</p>
        )}
      </div>
    </div>
  );
}

interface TableBodyProps<Row> extends RowProps<Row> {
  table: Table<Row>;
  rows: readonly Row[];
  virtual: ReturnType<typeof useVirtualRows>;
  selectedIndex: number;
}

/** The rows that are in sight, between two empty ones as high as all others. */
function TableBody<Row>({ table, rows, virtual, selectedIndex, onSelect, selectable, lead }: TableBodyProps<Row>) {
  const { columns, shown } = table;
  const wholes = useMemo(() => wholesOf(columns, rows), [columns, rows]);
  return (
    <tbody>
      {virtual.before > 0 && <tr aria-hidden="true" style={{ height: `${virtual.before}px` }} />}
      {virtual.indices.map((index) => {
        const row = shown[index];
        if (row === undefined) return null;
        const isSelected = index === selectedIndex;
        const select = onSelect && (selectable?.(row) ?? true) ? onSelect : undefined;
        return (
          <tr
            // By place, not by row: after a sort the cells get other texts instead of being created again.
            key={index}
            aria-rowindex={index + 2}
            class={`${select ? "selectable" : ""} ${isSelected ? "selected" : ""}`}
            aria-current={isSelected ? "true" : undefined}
            onClick={select && (() => select(row))}
          >
            {columns.map((column, place) => (
              <Cell
                key={column.id}
                column={column}
                row={row}
                first={place === 0}
                whole={wholes[place]!}
                onSelect={place === 0 ? select : undefined}
                lead={place === 0 ? lead?.(row) : undefined}
              />
            ))}
          </tr>
        );
      })}
      {virtual.after > 0 && <tr aria-hidden="true" style={{ height: `${virtual.after}px` }} />}
    </tbody>
  );
}

/** What fills the bars of each column: its largest value; null for a column without bars. */
function wholesOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): (number | null)[] {
  return columns.map((column) => {
    if (!column.bar) return null;
    let most = 0;
    for (const row of rows) {
      const value = column.value(row);
      if (typeof value === "number" && value > most) most = value;
    }
    return most || null;
  });
}

/** The least width of a column: on a phone the names leave room for at least one number. */
const widthOf = (column: { width: string }, place: number): string =>
  place === 0 ? `min(${column.width}, 48vw)` : column.width;
