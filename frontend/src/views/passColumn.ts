/** The pass of an op or of a call, as all tables have it. */
import type { Direction, Role } from "../api/types";
import type { Column } from "../components/table/columns";
import type { Task } from "../components/table/tasks";
import { DEFINITIONS } from "../format/definitions";

/** `of` is empty for what is in no pass. */
export const passColumn = <Row>(
  of: (row: Row) => Direction | Role,
  width: string,
  tasks?: readonly Task[],
): Column<Row> => ({
  id: "pass",
  ...(tasks && { tasks }),
  header: "Pass",
  definition: DEFINITIONS.pass,
  value: (row) => of(row) || null,
  missing: "–",
  filter: "choice",
  width,
});
