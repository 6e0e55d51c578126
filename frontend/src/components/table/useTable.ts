/** How a table is sorted and filtered, and the columns and rows that it shows for that. */
import type { RefObject } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useColumns } from "../sums";
import type { Column } from "./columns";
import { AS_AT_FIRST, createModel, type TableModel, type TableOptions, type TableState } from "./model";
import { columnsOf, tasksOf, type Task } from "./tasks";

export interface TableContent<Row> {
  /** Keep the same array between renderings: sorting and filtering run again for a new one. */
  columns: readonly Column<Row>[];
  rows: Row[];
  /** Keeps sorting and filters; without it they go with the table. */
  options?: TableOptions;
  /** How it is sorted at first; the order of the rows when left out. */
  sort?: { id: string; desc: boolean };
  /** Puts the sorted rows that fit the filters in the order of a tree, without folded ones. */
  arrange?: (sorted: Row[], filtered: boolean) => Row[];
  /** Small tables do without filters; their files are in the menu of the card around them. */
  plain?: boolean;
  /** The task whose columns are shown until another is chosen. */
  firstTask?: Task;
}

export type Table<Row> = ReturnType<typeof useTable<Row>>;

/** `box` scrolls the rows. */
export function useTable<Row>(content: TableContent<Row>, box: RefObject<HTMLElement>) {
  const { rows, options, plain = false, arrange } = content;
  const all = useColumns(content.columns);
  const [kept, keep] = useKept(options);
  const { filters } = kept;
  const sorting = kept.sorting ?? content.sort ?? null;
  const sortedBy = sorting?.id ?? null;
  const descending = sorting?.desc ?? false;
  const state = useMemo<TableState>(
    () => ({ sorting: sortedBy === null ? null : { id: sortedBy, desc: descending }, filters }),
    [sortedBy, descending, filters],
  );
  const tasks = useMemo(() => (plain ? [] : tasksOf(all)), [all, plain]);
  const chosen = options?.task?.value ?? null;
  const task = tasks.length === 0 ? "all" : (tasks.find((one) => one === chosen) ?? content.firstTask ?? tasks[0]!);
  const used = [sortedBy, ...filters.map(({ id }) => id)].join(" ");
  const columns = useMemo(() => columnsOf(all, task, new Set(used.split(" "))), [all, task, used]);
  const model = useMemo(() => createModel(all, rows), [all, rows]);
  const sorted = useMemo(() => model.shown(state), [model, state]);
  usePrepared(model, rows.length);
  const filtered = filters.length > 0;
  const [asked, setAsked] = useState(false);
  const filtering = !plain && (asked || filtered);
  const shown = useMemo(() => (arrange ? arrange(sorted, filtered) : sorted), [arrange, sorted, filtered]);
  const choices = useChoices(columns, model, filtering);

  const sortBy = (column: Column<Row>): void => {
    const desc = sorting?.id === column.id ? !sorting.desc : column.unit !== undefined;
    keep({ ...kept, sorting: { id: column.id, desc } });
  };
  const filterBy = (id: string, query: string): void => {
    const others = filters.filter((filter) => filter.id !== id);
    // The row stays while the last filter of an address is typed over.
    setAsked(true);
    keep({ ...kept, filters: query === "" ? others : [...others, { id, query }] });
    if (box.current) box.current.scrollTop = 0;
  };
  const toggleFilters = (): void => {
    if (filtering) keep({ ...kept, filters: [] });
    // The row is opened to type in it.
    else requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(".filter")?.focus());
    setAsked(!filtering);
  };
  const queryOf = (id: string): string => filters.find((filter) => filter.id === id)?.query ?? "";
  const choicesOf = (id: string): string[] => choices.get(id) ?? [];
  return {
    /** Every column, of all tasks; the table draws `columns`. */
    all,
    columns,
    tasks,
    task,
    sorting,
    sortBy,
    /** The rows that fit the filters; `shown` leaves out folded ones. */
    sorted,
    shown,
    filtered,
    /** Whether there is a row of filters. */
    filtering,
    toggleFilters,
    queryOf,
    choicesOf,
    filterBy,
  };
}

/** The state, where it is kept, and what changes it. */
function useKept(options: TableOptions | undefined): [TableState, (next: TableState) => void] {
  const [own, setOwn] = useState<TableState>(AS_AT_FIRST);
  const keep = (next: TableState): void => {
    if (options) options.value = next;
    else setOwn(next);
  };
  return [options?.value ?? own, keep];
}

/** What the filters of columns with few values offer. */
function useChoices<Row>(
  columns: readonly Column<Row>[],
  model: TableModel<Row>,
  filtering: boolean,
): ReadonlyMap<string, string[]> {
  return useMemo(() => {
    const offered = columns.filter((column) => filtering && column.filter === "choice");
    return new Map(offered.map(({ id }) => [id, model.choicesOf(id)]));
  }, [columns, model, filtering]);
}

/** Below this many rows a column is indexed within a frame: there is nothing to prepare. */
const PREPARE_ABOVE = 5_000;

/** Indexes one column at a time while the browser is idle, so that the first sort of a large table is as fast as the next. */
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
