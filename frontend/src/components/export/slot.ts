/** How the drawings and small tables of a card reach the one menu in its title line. */
import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";

/** What can be downloaded of one drawing or table. */
export interface Download {
  /** Names it in the menu and, behind "dlprof-", its files, unless `file` does. */
  name: string;
  file?: string;
  csv: () => string;
  tsv: () => string;
  json: () => string;
  /** Of drawings: the picture as PNG. */
  png?: () => Promise<Blob>;
  /** Of drawings: whether their table stands below them, and the way to change it. */
  table?: { shown: boolean; show: (shown: boolean) => void };
}

/** Puts a way to the latest download into the menu; the function it returns takes it out again. */
export type Register = (download: () => Download) => () => void;

export const SlotContext = createContext<Register | null>(null);

/** Offers something in the menu of the card around it. False where there is no card: it then needs a menu of its own. */
export function useSlot(download: Download | null): boolean {
  const register = useContext(SlotContext);
  const latest = useRef(download);
  latest.current = download;
  const wanted = download !== null;
  useEffect(() => (register && wanted ? register(() => latest.current!) : undefined), [register, wanted]);
  return register !== null;
}
