/** What a table is read for, and the columns that this takes. A column names its tasks; the first column belongs to all. */
export const TASKS = ["time", "tensor_cores", "cpu", "shapes"] as const;
export type Task = (typeof TASKS)[number];
/** Of a table: one of its tasks, or all columns. */
export type Shown = Task | "all";

export const SHOWN: readonly Shown[] = [...TASKS, "all"];

export const TASK_TITLES: Record<Shown, string> = {
  time: "Time",
  tensor_cores: "Tensor Cores",
  cpu: "CPU",
  shapes: "Shapes",
  all: "All",
};

/** Of a column; a circle with `columns.ts` otherwise. */
interface OfTasks {
  id: string;
  tasks?: readonly Task[];
}

/** The tasks that a table has columns for, "all" with them; none where no column names any. */
export function tasksOf(columns: readonly OfTasks[]): Shown[] {
  const named = new Set(columns.flatMap(({ tasks }) => tasks ?? []));
  return named.size === 0 ? [] : SHOWN.filter((task) => task === "all" || named.has(task));
}

/** The columns to draw: those of the task, and those that the table is sorted or filtered by. */
export function columnsOf<Column extends OfTasks>(
  columns: readonly Column[],
  task: Shown,
  used: ReadonlySet<string>,
): readonly Column[] {
  if (task === "all") return columns;
  return columns.filter(({ id, tasks }, place) => place === 0 || tasks?.includes(task) || used.has(id));
}
