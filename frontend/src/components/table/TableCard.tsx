/** A card that is one table, below what else belongs to it; none where the table has no rows. */
import type { ComponentChildren } from "preact";
import { Card } from "../Card";
import { DataTable, type DataTableProps } from "./DataTable";

interface TableCardProps<Row> extends Omit<DataTableProps<Row>, "testId"> {
  title: ComponentChildren;
  /** Of the card. */
  testId: string;
  class?: string;
  children?: ComponentChildren;
}

export function TableCard<Row>({ title, testId, class: kind = "", children, ...table }: TableCardProps<Row>) {
  if (table.rows.length === 0) return null;
  return (
    <Card title={title} class={kind} testId={testId}>
      {children}
      <DataTable {...table} />
    </Card>
  );
}
