/** Offers the values of a table that is written out by hand in the menu of the card around it. Draws nothing there. */
import { useColumns } from "../sums";
import type { Column } from "../table/columns";
import { useSubject } from "./Drawing";
import { toCsv, toJson, toTsv } from "./formats";
import { useSlot, type Download } from "./slot";
import { DownloadMenu } from "./DownloadMenu";

export function TableFiles<Row>({
  name,
  columns: given,
  rows,
}: {
  name: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
}) {
  const columns = useColumns(given);
  const download: Download = {
    name,
    file: [name, useSubject()].filter(Boolean).join(" "),
    csv: () => toCsv(columns, rows),
    tsv: () => toTsv(columns, rows),
    json: () => toJson(columns, rows),
  };
  return useSlot(download) ? null : <DownloadMenu downloads={() => [download]} />;
}
