/** One box that finds pages, ops, kernels, modules, rules, measures, reports and runs; choosing one goes there. */
import { useEffect, useId, useState } from "preact/hooks";
import { useModal } from "../../components/useModal";
import type { RunEntry } from "../../api/types";
import { formatCount } from "../../format/number";
import { expectPageFocus, focusTerm } from "../../state/pageFocus";
import type { Page } from "../../state/pages";
import { Keys } from "../keys/KeyHelp";
import { search, type Hit } from "./hits";
import { wordsOf } from "../../format/wordMatch";
import { targetOf } from "./target";
import { useAnswer } from "./useAnswer";
import { pageParam, profileParam, unitParam } from "../../state/sharedParams";
import { goTo, showProfile } from "../../state/navigate";
import { NO_PROFILE } from "../../state/profile";
import { ROUTES } from "../routes";

interface SearchDialogProps {
  entries: readonly RunEntry[];
  onClose: () => void;
}

export function SearchDialog({ entries, onClose }: SearchDialogProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const dialog = useModal();
  const list = useId();

  const asked = wordsOf(text).join(" ");
  const { run } = profileParam.value;
  const answer = useAnswer(asked);
  const groups = search(text, entries, answer.data, unitParam.value === "step");
  const hits = groups.flatMap((group) => group.hits);
  const current = Math.min(at, hits.length - 1);
  const { waits } = answer;

  const choose = (hit: Hit | undefined): void => {
    if (!hit) return;
    onClose();
    const { page, changes, run: another, term } = targetOf(hit, pageParam.value);
    if (page !== pageParam.value) expectPageFocus(term);
    else if (term !== null) requestAnimationFrame(() => focusTerm(term));
    if (another === null) goTo(page, ...changes);
    else showProfile({ ...NO_PROFILE, run: another }, pageParam.to(page));
  };
  const move = (to: number): void => {
    if (hits.length > 0) setAt((to + hits.length) % hits.length);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: Math.min(current + 6, hits.length - 1),
      PageUp: Math.max(0, current - 6),
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
  const optionId = (place: number): string => `${list}-${place}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: both move the mark that is looked for.
  useEffect(
    () => dialog.current?.querySelector(`[aria-selected="true"]`)?.scrollIntoView?.({ block: "nearest" }),
    [current, asked],
  );

  let place = -1;
  return (
    <dialog
      ref={dialog}
      class="sheet search"
      aria-label="Search"
      data-testid="search"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <form
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          choose(hits[current]);
        }}
      >
        <input
          type="text"
          role="combobox"
          autofocus
          autocomplete="off"
          spellcheck={false}
          aria-label="Search pages, ops, kernels, modules, rules, measures, reports and runs"
          aria-expanded="true"
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={hits.length > 0 ? optionId(current) : undefined}
          placeholder="Search ops, kernels, modules, rules, measures, runs …"
          data-testid="search-input"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <button type="button" class="button button-small" onClick={onClose} aria-label="Esc: close the search">
          Esc
        </button>
      </form>
      <div class="search-hits" id={list} role="listbox" aria-label="Found" aria-busy={waits}>
        {groups.map((group) => (
          <div role="group" aria-label={group.label} key={group.kind}>
            <div class="search-group" aria-hidden="true">
              {group.label}
              {group.found > group.hits.length && (
                <span>
                  {" "}
                  {formatCount(group.found)}, the best {group.hits.length}
                </span>
              )}
            </div>
            {group.hits.map((hit) => {
              const mine = ++place;
              return (
                <div
                  key={hit.id}
                  id={optionId(mine)}
                  role="option"
                  class="search-hit"
                  data-testid={`hit-${hit.kind}`}
                  aria-selected={mine === current}
                  onPointerMove={() => mine !== current && setAt(mine)}
                  onClick={() => choose(hit)}
                >
                  <span class="search-label">{hit.label}</span>
                  <span class="search-detail">{hit.detail}</span>
                  <span class="search-mark">
                    {hit.kind === "page" ? <Keys keys={`g ${ROUTES[hit.id as Page].key}`} /> : hit.mark}
                  </span>
                </div>
              );
            })}
          </div>
        ))}
      </div>
      <p class="search-foot muted small">
        <span role="status" data-testid="search-status">
          {statusOf(asked, hits.length, waits, run)}
        </span>
        {answer.error && <span class="search-error"> Ops, kernels and modules cannot be searched: {answer.error}</span>}
        <span class="grow" />
        <span aria-hidden="true">
          <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd>
        </span>
      </p>
    </dialog>
  );
}

function statusOf(asked: string, hits: number, waits: boolean, run: string | null): string {
  if (asked === "") return run === null ? "" : `Searches ${run}, the iterations that are selected.`;
  if (waits) return hits > 0 ? "Searching …" : "";
  return hits === 0 ? `Nothing found for “${asked}”${run === null ? "" : ` in ${run}`}.` : `${hits} shown.`;
}
