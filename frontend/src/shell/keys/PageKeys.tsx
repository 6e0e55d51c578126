/** The keys that work on every page: search, help, from place to place, from page to page, from row to row. Draws nothing. */
import { PAGES, type Page } from "../../state/pages";
import { moveRow, toggleFilters } from "../../keys/rows";
import { useShortcut } from "../../keys/useShortcut";
import { openPage } from "../../state/navigate";
import { openPlace } from "../Header";
import { PLACES, type Place } from "../places";
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
  useShortcut("j", "Next row or finding", "Tables", rowBy(1));
  useShortcut("k", "Row or finding before", "Tables", rowBy(-1));
  useShortcut("f", "Filter the table", "Tables", () => toggleFilters(document.querySelector("main") ?? document));
  return (
    <>
      {PLACES.map((place, index) => (
        <PlaceKey key={place.id} place={place} number={index + 1} />
      ))}
      {PAGES.map((page) => (
        <PageKey key={page} page={page} />
      ))}
    </>
  );
}

function PageKey({ page }: { page: Page }) {
  const { title, key } = ROUTES[page];
  useShortcut(`g ${key}`, title, "Pages", () => openPage(page));
  return null;
}

function PlaceKey({ place, number }: { place: Place; number: number }) {
  useShortcut(String(number), place.title, "Places", () => openPlace(place));
  return null;
}
