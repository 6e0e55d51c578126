/** From row to row of a table, or of the findings, by keys. Works on what is drawn, so that it serves every table, whatever its rows are. */

const ROWS = "tr.selectable";

/** The table that keys move in: the one that has the focus, else the one with a selected row, else the first of the page. */
function currentTable(page: ParentNode): HTMLElement | null {
  const focused = document.activeElement?.closest<HTMLElement>(".table");
  if (focused?.querySelector(ROWS)) return focused;
  const selected = page.querySelector<HTMLElement>("tr[aria-current='true']")?.closest<HTMLElement>(".table");
  if (selected) return selected;
  return (
    [...page.querySelectorAll<HTMLElement>(".table")].find(
      (table) => !table.closest(".pane") && table.querySelector(ROWS),
    ) ?? null
  );
}

/**
 * One row down (1) or up (-1). Where a row is selected the next one is selected with it, so that its details follow; elsewhere the
 * focus moves, and Enter opens.
 */
export function moveRow(page: ParentNode, by: 1 | -1): void {
  const table = currentTable(page);
  if (!table) {
    moveLine(page, by);
    return;
  }
  const rows = [...table.querySelectorAll<HTMLElement>(ROWS)];
  const selected = rows.findIndex((row) => row.getAttribute("aria-current") === "true");
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const from = focused >= 0 ? focused : selected;
  const next = rows[from < 0 ? (by > 0 ? 0 : rows.length - 1) : from + by];
  if (!next) return;
  if (selected >= 0) next.click();
  const button = next.querySelector<HTMLElement>("button.link");
  button?.focus();
  button?.scrollIntoView?.({ block: "nearest" });
}

/** Where the page has findings in place of a table. */
function moveLine(page: ParentNode, by: 1 | -1): void {
  const lines = [...page.querySelectorAll<HTMLElement>("button.finding-line, .finding-choices button")];
  const focused = lines.indexOf(document.activeElement as HTMLElement);
  lines[focused < 0 ? (by > 0 ? 0 : lines.length - 1) : focused + by]?.focus();
}

/** Shows or hides the filters of the table that has the focus, else of the first of the page. */
export function toggleFilters(page: ParentNode): void {
  const around = document.activeElement?.closest<HTMLElement>(".table")?.querySelector<HTMLElement>(TOGGLE);
  (around ?? page.querySelector<HTMLElement>(TOGGLE))?.click();
}

const TOGGLE = "[data-testid='filter-toggle']";
