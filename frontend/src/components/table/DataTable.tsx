/** Rows and columns in; a table out that sorts, filters by column, exports what it shows and scrolls in its own box. */
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatInteger } from "../../format/number";
import { CopyButton } from "../CopyButton";
import { toCsv, toJson, toTsv } from "../export/formats";
import { saveCsv, saveJson } from "../export/save";
import { useSlot } from "../export/slot";
import { DownloadMenu } from "../export/DownloadMenu";
import { useColumns } from "../sums";
import { Switch } from "../Switch";
import { Cell } from "./Cell";
import { ColumnFilter } from "./ColumnFilter";
import type { Column } from "./columns";
import { GrowingContext } from "./GrowingContext";
import { AS_AT_FIRST, createModel, type TableModel, type TableOptions, type TableState } from "./model";
import { columnsOf, TASK_TITLES, tasksOf, type Shown, type Task } from "./tasks";
import { useFill } from "./useFill";
import { useVirtualRows } from "./useVirtualRows";

interface DataTableProps<Row> {
  /** What the table holds, for its caption and the names of its files. */
  name: string;
  /** Keep the same array between renderings: sorting and filtering run again for a new one. */
  columns: readonly Column<Row>[];
  rows: Row[];
  rowId: (row: Row) => string;
  /** Keeps sorting and filters; without it they go with the table. */
  options?: TableOptions;
  /** How it is sorted at first; the order of the rows when left out. */
  sort?: { id: string; desc: boolean };
  selected?: string | null;
  onSelect?: (row: Row) => void;
  /** Which rows lead somewhere; all when left out. */
  selectable?: (row: Row) => boolean;
  /** The rows there are on the server, when only the first were sent. */
  totalRows?: number;
  /** Puts the sorted rows that fit the filters in the order of a tree, without those that are folded away. */
  arrange?: (sorted: Row[], filtered: boolean) => Row[];
  /** What stands before the content of a row's first cell. */
  lead?: (row: Row) => ComponentChildren;
  /** What stands next to the number of rows. */
  actions?: ComponentChildren;
  /** Small tables do without filters; their files are in the menu of the card around them. */
  plain?: boolean;
  /** The main table of its page: as high as the window below it. */
  fill?: boolean;
  /** The task whose columns are shown until another is chosen. */
  firstTask?: Task;
  testId?: string;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { name, rows, rowId, selected = null, onSelect, totalRows = rows.length, plain = false, arrange } = props;
  const all = useColumns(props.columns);
  const [own, setOwn] = useState<TableState>(AS_AT_FIRST);
  const kept = props.options?.value ?? own;
  const setState = (next: TableState): void => {
    if (props.options) props.options.value = next;
    else setOwn(next);
  };
  const { filters } = kept;
  const sorting = kept.sorting ?? props.sort ?? null;
  const sortedBy = sorting?.id ?? null;
  const descending = sorting?.desc ?? false;
  const state = useMemo<TableState>(
    () => ({ sorting: sortedBy === null ? null : { id: sortedBy, desc: descending }, filters }),
    [sortedBy, descending, filters],
  );
  const tasks = useMemo(() => (plain ? [] : tasksOf(all)), [all, plain]);
  const chosen = props.options?.task?.value ?? null;
  const task = tasks.length === 0 ? "all" : (tasks.find((one) => one === chosen) ?? props.firstTask ?? tasks[0]!);
  const used = [sortedBy, ...filters.map(({ id }) => id)].join(" ");
  const columns = useMemo(() => columnsOf(all, task, new Set(used.split(" "))), [all, task, used]);
  const model = useMemo(() => createModel(all, rows), [all, rows]);
  const sorted = useMemo(() => model.shown(state), [model, state]);
  usePrepared(model, rows.length);
  const filtered = state.filters.length > 0;
  const [asked, setAsked] = useState(false);
  const filtering = !plain && (asked || filtered);
  const wholes = useMemo(() => wholesOf(columns, rows), [columns, rows]);
  const shown = useMemo(() => (arrange ? arrange(sorted, filtered) : sorted), [arrange, sorted, filtered]);
  const choices = useMemo(
    () =>
      new Map(
        columns
          .filter((column) => filtering && column.filter === "choice")
          .map((column) => [column.id, model.choicesOf(column.id)]),
      ),
    [columns, model, filtering],
  );
  const growing = useContext(GrowingContext);
  const box = useRef<HTMLDivElement>(null);
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

  const sortBy = (column: Column<Row>): void => {
    const firstDesc = column.unit !== undefined;
    const desc = state.sorting?.id === column.id ? !state.sorting.desc : firstDesc;
    setState({ ...kept, sorting: { id: column.id, desc } });
  };
  const filterBy = (id: string, query: string): void => {
    const others = filters.filter((filter) => filter.id !== id);
    // The row stays while the last filter of an address is typed over.
    setAsked(true);
    setState({ ...kept, filters: query === "" ? others : [...others, { id, query }] });
    if (box.current) box.current.scrollTop = 0;
  };
  const queryOf = (id: string): string => state.filters.find((filter) => filter.id === id)?.query ?? "";
  const download = plain
    ? {
        name,
        csv: () => toCsv(all, sorted),
        tsv: () => toTsv(all, sorted),
        json: () => toJson(all, sorted),
      }
    : null;
  const inCard = useSlot(download);

  const which = `${arrange ? "all rows that fit the filters" : "the rows shown"}, with all columns,`;
  const toggleFilters = (): void => {
    if (filtering) setState({ ...kept, filters: [] });
    // The row is opened to type in it.
    else requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(".filter")?.focus());
    setAsked(!filtering);
  };

  return (
    <div class="table" data-testid={props.testId}>
      {download && !inCard && <DownloadMenu downloads={() => [download]} />}
      {!plain && (
        <div class="table-bar">
          <span class="muted" role="status">
            {shown.length === rows.length
              ? `${formatInteger(rows.length)} ${rows.length === 1 ? "row" : "rows"}`
              : `${formatInteger(shown.length)} of ${formatInteger(rows.length)} ${rows.length === 1 ? "row" : "rows"}`}
            {totalRows > rows.length &&
              `, the first of ${formatInteger(totalRows)}${growing ? "; the rest is coming" : ""}`}
          </span>
          <button
            type="button"
            class="button button-small"
            data-testid="filter-toggle"
            aria-pressed={filtering}
            aria-keyshortcuts="f"
            data-tip={filtering ? "Clear and hide the filters." : "Filter by column. Key: f"}
            onClick={toggleFilters}
          >
            {filtered ? "Clear filters" : "Filter"}
          </button>
          {tasks.length > 0 && props.options?.task && (
            <Columns task={task} tasks={tasks} onChange={(next) => (props.options!.task!.value = next)} />
          )}
          {props.actions}
          <span class="grow" />
          <button
            type="button"
            class="button button-small"
            data-testid="csv-download"
            data-tip={`Save ${which} as a CSV file.`}
            onClick={() => saveCsv(name, toCsv(all, sorted))}
          >
            CSV
          </button>
          <button
            type="button"
            class="button button-small"
            data-testid="json-download"
            data-tip={`Save ${which} as a JSON file.`}
            onClick={() => saveJson(name, toJson(all, sorted))}
          >
            JSON
          </button>
          <CopyButton label="Copy" tip={`Copy ${which} for a spreadsheet.`} text={() => toTsv(all, sorted)} />
        </div>
      )}
      <div class="table-box" ref={box} tabIndex={0} role="region" aria-label={`${name}, scrollable`}>
        <table aria-rowcount={shown.length + 1} style={{ minWidth: `calc(${columns.map(widthOf).join(" + ")})` }}>
          <caption class="hidden">{name}</caption>
          <colgroup>
            {columns.map((column, place) => (
              // The names take what the other columns leave.
              <col key={column.id} style={place === 0 ? undefined : { width: column.width }} />
            ))}
          </colgroup>
          <thead>
            <tr>
              {columns.map((column) => {
                const sorting = state.sorting?.id === column.id ? state.sorting : null;
                const direction = sorting ? (sorting.desc ? "descending" : "ascending") : undefined;
                return (
                  <th key={column.id} scope="col" aria-sort={direction} class={column.unit ? "right" : ""}>
                    <button
                      type="button"
                      class="sort"
                      data-tip={column.perStep ? `${column.definition} ${PER_STEP}` : column.definition}
                      onClick={() => sortBy(column)}
                    >
                      {column.header}
                      <span class="sort-mark" aria-hidden="true">
                        {sorting ? (sorting.desc ? " ▾" : " ▴") : ""}
                      </span>
                    </button>
                    {filtering && (
                      <ColumnFilter
                        column={column}
                        query={queryOf(column.id)}
                        choices={choices.get(column.id) ?? []}
                        onChange={(value) => filterBy(column.id, value)}
                      />
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {virtual.before > 0 && <tr aria-hidden="true" style={{ height: `${virtual.before}px` }} />}
            {virtual.indices.map((index) => {
              const row = shown[index];
              if (row === undefined) return null;
              const isSelected = index === selectedIndex;
              const select = onSelect && (props.selectable?.(row) ?? true) ? onSelect : undefined;
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
                      lead={place === 0 ? props.lead?.(row) : undefined}
                    />
                  ))}
                </tr>
              );
            })}
            {virtual.after > 0 && <tr aria-hidden="true" style={{ height: `${virtual.after}px` }} />}
          </tbody>
        </table>
        {shown.length === 0 && (
          <p class="table-empty">{rows.length === 0 ? "Nothing here." : "No row fits the filters."}</p>
        )}
      </div>
    </div>
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

/** Which columns are drawn. */
function Columns({ task, tasks, onChange }: { task: Shown; tasks: readonly Shown[]; onChange: (task: Shown) => void }) {
  return (
    <span class="table-columns">
      Columns:
      <Switch
        label="Columns"
        testId="table-columns"
        value={task}
        choices={tasks.map((one) => [one, TASK_TITLES[one]] as const)}
        onChange={onChange}
      />
    </span>
  );
}

/** Added to the definition of a sum. */
const PER_STEP = "Shown per step: divided by the number of selected iterations.";

/** Below this many rows a column is indexed within a frame: there is nothing to prepare. */
const PREPARE_ABOVE = 5_000;

/** Indexes the columns one by one while the browser is idle, so that the first sort of a large table is as fast as the next. */
function usePrepared<Row>(model: TableModel<Row>, rows: number): void {
  useEffect(() => {
    if (rows < PREPARE_ABOVE || typeof requestIdleCallback === "undefined") return undefined;
    let handle = 0;
    const next = (): void => {
      if (model.prepare()) handle = requestIdleCallback(next);
    };
    handle = requestIdleCallback(next);
    return () => cancelIdleCallback(handle);
  }, [model, rows]);
}

/** The least width of a column: on a phone the names leave room for at least one number. */
const widthOf = (column: { width: string }, place: number): string =>
  place === 0 ? `min(${column.width}, 48vw)` : column.width;
