/** Offers the values of a table that is written out by hand in the menu of the card around it. Draws nothing there. */
import type { Column } from "../table/columns";
import { useSubject } from "./Drawing";
import { toCsv, toJson, toTsv } from "./formats";
import { useSlot, type Takeaway } from "./slot";
import { TakeawayMenu } from "./TakeawayMenu";

export function TableFiles<Row>({ name, columns, rows }: { name: string; columns: readonly Column<Row>[]; rows: readonly Row[] }) {
  const takeaway: Takeaway = {
    name,
    file: [name, useSubject()].filter(Boolean).join(" "),
    csv: () => toCsv(columns, rows),
    tsv: () => toTsv(columns, rows),
    json: () => toJson(columns, rows),
  };
  return useSlot(takeaway) ? null : <TakeawayMenu takeaways={() => [takeaway]} />;
}
