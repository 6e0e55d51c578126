/** The keys that work on every page: search, help, from page to page, from row to row. Draws nothing. */
import { PAGES, type Page } from "../../state/pages";
import { moveRow } from "../../keys/rows";
import { useShortcut } from "../../keys/useShortcut";
import { openPage } from "../../state/navigate";
import { ROUTES } from "../routes";

interface PageKeysProps {
  /** Null where there is nothing to search. */
  onSearch: (() => void) | null;
  onHelp: () => void;
}

const rowBy = (by: 1 | -1) => (): void => moveRow(document.querySelector("main") ?? document, by);

export function PageKeys({ onSearch, onHelp }: PageKeysProps) {
  useShortcut("/", "Search", "Anywhere", onSearch);
  useShortcut("mod+k", "Search", "Anywhere", onSearch);
  useShortcut("?", "This list", "Anywhere", onHelp);
  useShortcut("j", "Next row of the table", "Tables", rowBy(1));
  useShortcut("k", "Row before", "Tables", rowBy(-1));
  return (
    <>
      {PAGES.map((page, place) => (
        <PageKey key={page} page={page} place={place} />
      ))}
    </>
  );
}

function PageKey({ page, place }: { page: Page; place: number }) {
  const { title, key } = ROUTES[page];
  const open = (): void => openPage(page);
  useShortcut(`g ${key}`, title, "Pages", open);
  useShortcut(String(place + 1), title, "Pages", place < 9 ? open : null);
  return null;
}
