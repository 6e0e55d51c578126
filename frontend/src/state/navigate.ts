/** From page to page and from run to run: what changes with them. */
import { batch } from "@preact/signals";
import { connectedParams } from "./address";
import { expectPageFocus } from "./pageFocus";
import { assign, type Assignment } from "./param";
import { pageParam, profileParam } from "./sharedParams";
import type { Page } from "./pages";
import type { ProfileChoice } from "./profile";

/** A page, and what is to be chosen there. */
export interface Target {
  page: Page;
  changes: readonly Assignment[];
}

/**
 * Shows a page. Where another page is opened for one thing, the filters that may hide it are dropped: a link shows what it names.
 */
export function goTo(page: Page, ...changes: readonly Assignment[]): void {
  const names = changes.some(({ param, value }) => param.options.namesOne && value !== null);
  const dropped = names && page !== pageParam.value ? connectedParams().filter(({ options }) => options.filters) : [];
  batch(() => {
    for (const param of dropped) param.reset();
    assign(...changes, pageParam.to(page));
  });
}

/** Shows a page that was picked by its name: the focus goes to its heading. */
export function openPage(page: Page, ...changes: readonly Assignment[]): void {
  if (page !== pageParam.value) expectPageFocus();
  goTo(page, ...changes);
}

/** Shows another profile. Parameters that are about the previous one are reset. */
export function showProfile(choice: ProfileChoice, ...changes: readonly Assignment[]): void {
  batch(() => {
    for (const param of connectedParams()) if (param.options.ofRun) param.reset();
    assign(profileParam.to(choice), ...changes);
  });
}
