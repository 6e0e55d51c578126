/**
 * A drawing and the values it is made of. The values are what a screen reader or a spreadsheet gets in its place: as a table below
 * it, as CSV and JSON; the drawing itself can be saved as a picture.
 */
import type { ComponentChildren } from "preact";
import { createContext } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import { useView } from "../../state/store";
import type { ViewState } from "../../state/viewState";
import type { Column } from "../table/columns";
import { DataTable } from "../table/DataTable";
import { toCsv, toJson, toTsv } from "./formats";
import { pictureOf } from "./picture";
import { SlotContext, useSlot, type Register, type Takeaway } from "./slot";
import { TakeawayMenu } from "./TakeawayMenu";

interface DrawingProps<Row> {
  /** Its title in the menu and on the picture. */
  name: string;
  /** Keep the same array between renderings. */
  columns: readonly Column<Row>[];
  rows: Row[];
  children: ComponentChildren;
}

export function Drawing<Row>({ name, columns, rows, children }: DrawingProps<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState(false);
  const under = useSubject();
  const takeaway: Takeaway = {
    name,
    file: [name, under].filter(Boolean).join(" "),
    csv: () => toCsv(columns, rows),
    tsv: () => toTsv(columns, rows),
    json: () => toJson(columns, rows),
    png: () => pictureOf(box.current!, { title: name, under }),
    table: { shown, show: setShown },
  };
  const inCard = useSlot(takeaway);
  return (
    <div class="drawing" data-drawing={name}>
      {!inCard && <TakeawayMenu takeaways={() => [takeaway]} />}
      <div ref={box}>{children}</div>
      {shown && (
        <div class="drawing-table" data-testid="drawing-table">
          <SlotContext.Provider value={NO_SLOT}>
            <DataTable name={`${name}, values`} plain columns={columns} rows={rows} rowId={(row) => String(rows.indexOf(row))} />
          </SlotContext.Provider>
        </div>
      )}
    </div>
  );
}

/** The table below a drawing is taken away by the drawing's own menu. */
const NO_SLOT: Register = () => () => {};

/** What a page is about, where it is not the run of the address. */
export const SubjectContext = createContext<string | null>(null);

/** The run and the iterations that a page is about, for the titles of pictures and the names of files. */
export function useSubject(): string {
  const { state } = useView();
  return useContext(SubjectContext) ?? subjectOf(state);
}

function subjectOf({ page, profile, range }: ViewState): string {
  if (page === "runs" || !profile.run) return "";
  if (range === null) return profile.run;
  return `${profile.run}, ${range.first === range.last ? `iteration ${range.first + 1} of the recording` : `iterations ${range.first + 1} to ${range.last + 1} of the recording`}`;
}
