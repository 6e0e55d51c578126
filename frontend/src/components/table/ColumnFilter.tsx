/** What people type or choose above a column. */
import type { Column } from "./columns";

interface ColumnFilterProps<Row> {
  column: Column<Row>;
  query: string;
  choices: string[];
  onChange: (value: string) => void;
}

export function ColumnFilter<Row>({ column, query, choices, onChange }: ColumnFilterProps<Row>) {
  const label = `Filter by ${column.header}`;
  if (column.filter === "choice") {
    return (
      <select class="filter" aria-label={label} value={query} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">all</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  const example = {
    ns: ">1ms",
    percent: ">5",
    count: ">10",
    count_per_step: ">10",
    bytes: ">1MiB",
    bytes_per_second: ">1G",
    ratio: ">1",
    per_second: ">1",
    flops: ">1T",
    flops_per_second: ">1T",
    joules: ">1",
    watts: ">100",
  };
  return (
    <input
      class="filter"
      type="search"
      aria-label={label}
      placeholder={column.unit ? example[column.unit] : "search"}
      value={query}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}
