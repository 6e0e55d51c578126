/** The line above a table: how many rows it shows, its filters and columns, its files. */
import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { formatInteger } from "../../format/number";
import { CopyButton } from "../CopyButton";
import { toCsv, toJson, toTsv } from "../export/formats";
import { saveCsv, saveJson } from "../export/save";
import { Switch } from "../Switch";
import { GrowingContext } from "./GrowingContext";
import type { TableOptions } from "./model";
import { TASK_TITLES } from "./tasks";
import type { Table } from "./useTable";

interface TableBarProps<Row> {
  name: string;
  table: Table<Row>;
  /** How many rows are here, and how many on the server. */
  rows: number;
  totalRows: number;
  options?: TableOptions;
  /** Whether rows may be folded away, which its files have. */
  folds: boolean;
  actions?: ComponentChildren;
}

export function TableBar<Row>({ name, table, rows, totalRows, options, folds, actions }: TableBarProps<Row>) {
  const { all, sorted, filtering } = table;
  const growing = useContext(GrowingContext);
  const task = options?.task;
  const which = `${folds ? "all rows that fit the filters" : "the rows shown"}, with all columns,`;
  return (
    <div class="table-bar">
      <span class="muted" role="status">
        {table.shown.length !== rows && `${formatInteger(table.shown.length)} of `}
        {`${formatInteger(rows)} ${rows === 1 ? "row" : "rows"}`}
        {totalRows > rows && `, the first of ${formatInteger(totalRows)}${growing ? "; the rest is coming" : ""}`}
      </span>
      <button
        type="button"
        class="button button-small"
        data-testid="filter-toggle"
        aria-pressed={filtering}
        aria-keyshortcuts="f"
        data-tip={filtering ? "Clear and hide the filters." : "Filter by column. Key: f"}
        onClick={table.toggleFilters}
      >
        {table.filtered ? "Clear filters" : "Filter"}
      </button>
      {table.tasks.length > 0 && task && (
        <span class="table-columns">
          Columns:
          <Switch
            label="Columns"
            testId="table-columns"
            value={table.task}
            choices={table.tasks.map((one) => [one, TASK_TITLES[one]] as const)}
            onChange={(next) => (task.value = next)}
          />
        </span>
      )}
      {actions}
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
  );
}
