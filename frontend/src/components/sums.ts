/**
 * Sums over the selected iterations, per step or as they are: by how many iterations the page divides them, and the columns and values
 * that follow. What is sorted, filtered, copied and saved is what is shown.
 */
import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Unit } from "../format/unit";
import type { Column } from "./table/columns";

/** The number of iterations that sums are divided by; 1 shows them as they are. */
export const SumsContext = createContext(1);

export const useIterations = (): number => useContext(SumsContext);

export const perStep = (sum: number | null, iterations: number): number | null =>
  sum === null ? null : sum / iterations;

/** A mean count is printed otherwise than a count. */
export const unitPerStep = (unit: Unit, iterations: number): Unit =>
  unit === "count" && iterations > 1 ? "count_per_step" : unit;

/** The same columns, those of sums divided. */
export function columnsPerStep<Row>(columns: readonly Column<Row>[], iterations: number): readonly Column<Row>[] {
  if (iterations === 1 || !columns.some(({ sums }) => sums)) return columns;
  return columns.map((column) =>
    column.sums
      ? {
          ...column,
          perStep: true,
          value: (row: Row) => {
            const value = column.value(row);
            return typeof value === "number" ? value / iterations : value;
          },
          ...(column.unit && { unit: unitPerStep(column.unit, iterations) }),
        }
      : column,
  );
}

/** The columns as the page shows them; the same array for the same columns. */
export function useColumns<Row>(columns: readonly Column<Row>[]): readonly Column<Row>[] {
  const iterations = useIterations();
  return useMemo(() => columnsPerStep(columns, iterations), [columns, iterations]);
}
