/** What a column of a table is. One description serves the header, the cells, sorting, filtering and the files. */
import type { ComponentChildren } from "preact";
import type { Unit } from "../../format/unit";
import type { Task } from "./tasks";

export interface Column<Row> {
  id: string;
  header: string;
  /** One sentence, shown on hover and focus of the header. */
  definition: string;
  /** What is sorted, filtered and exported; null is unknown. */
  value: (row: Row) => string | number | null;
  /** Its key in JSON, where that does not follow from the header and the unit. */
  key?: string;
  /** It is a sum over the selected iterations, which a page may show per step. */
  sums?: boolean;
  /** Such a sum, divided: its heading says so in files. Set by `sums.ts`. */
  perStep?: boolean;
  /** Numbers carry the unit they are shown in. */
  unit?: Unit;
  /** A difference, with its sign. */
  signed?: boolean;
  /** Its values are yes, no and unknown. */
  verdict?: boolean;
  /** "choice" offers the values that occur, "text" a search box (the default). */
  filter?: "text" | "choice";
  /** The cell where it is more than the value. */
  cell?: (row: Row) => ComponentChildren;
  /** CSS width of the column, of the first one the least width; no share such as 1fr, because they are added up. */
  width: string;
  /** A share, with a bar behind it that is full for the largest of the column. */
  bar?: boolean;
  /** The tasks that it is shown for; without, only where all columns are. */
  tasks?: readonly Task[];
  /** What stands for null. */
  missing?: string;
}
