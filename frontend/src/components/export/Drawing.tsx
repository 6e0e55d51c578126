/**
 * A drawing and the values it is made of. The values are what a screen reader or a spreadsheet gets in its place: as a table below
 * it, as CSV and JSON; the drawing itself can be saved as a picture.
 */
import type { ComponentChildren } from "preact";
import { createContext } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import type { Column } from "../table/columns";
import { DataTable } from "../table/DataTable";
import { useColumns } from "../sums";
import { toCsv, toJson, toTsv } from "./formats";
import { pictureOf } from "./picture";
import { SlotContext, useSlot, type Register, type Download } from "./slot";
import { DownloadMenu } from "./DownloadMenu";

interface DrawingProps<Row> {
  /** Its title in the menu and on the picture. */
  name: string;
  /** Keep the same array between renderings. */
  columns: readonly Column<Row>[];
  rows: Row[];
  children: ComponentChildren;
}

export function Drawing<Row>({ name, columns: given, rows, children }: DrawingProps<Row>) {
  const columns = useColumns(given);
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState(false);
  const under = useSubject();
  const download: Download = {
    name,
    file: [name, under].filter(Boolean).join(" "),
    csv: () => toCsv(columns, rows),
    tsv: () => toTsv(columns, rows),
    json: () => toJson(columns, rows),
    png: () => pictureOf(box.current!, { title: name, under }),
    table: { shown, show: setShown },
  };
  const inCard = useSlot(download);
  return (
    <div class="drawing" data-drawing={name}>
      {!inCard && <DownloadMenu downloads={() => [download]} />}
      <div ref={box}>{children}</div>
      {shown && (
        <div class="drawing-table" data-testid="drawing-table">
          <SlotContext.Provider value={NO_SLOT}>
            <DataTable
              name={`${name}, values`}
              plain
              columns={given}
              rows={rows}
              rowId={(row) => String(rows.indexOf(row))}
            />
          </SlotContext.Provider>
        </div>
      )}
    </div>
  );
}

/** The table below a drawing is downloaded by the drawing's own menu. */
const NO_SLOT: Register = () => () => {};

/** What a page is about: the run and the iterations, for the titles of pictures and the names of files. */
export const SubjectContext = createContext("");

export const useSubject = (): string => useContext(SubjectContext);
