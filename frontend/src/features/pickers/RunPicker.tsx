/** One of many runs: a list to search, by groups, of which only what is in sight is drawn. */
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunEntry } from "../../api/types";
import { Popover } from "../../components/Popover";
import { useVirtualRows } from "../../components/table/useVirtualRows";
import { formatNs } from "../../format/duration";
import { runItems, runLines, type RunItem } from "./runList";

interface RunPickerProps {
  entries: readonly RunEntry[];
  run: string;
  label: string;
  testId: string;
  onChange: (run: string) => void;
}

export function RunPicker({ entries, run, label, testId, onChange }: RunPickerProps) {
  const items = useMemo(() => runItems(entries), [entries]);
  const chosen = items.find((item) => item.run === run);
  const facts = chosen ? [chosen.precision, chosen.facts].filter(Boolean).join(" · ") : "not in this logdir";
  return (
    <div class="picker picker-wide">
      <span aria-hidden="true">{label}</span>
      <Popover
        label={`${label}: ${run}${facts ? `, ${facts}` : ""}; choose another of ${items.length}`}
        testId={testId}
        value={run}
        face={
          <>
            {run} {facts && <span class="muted">{facts}</span>}
          </>
        }
      >
        {(close) => (
          <RunList
            items={items}
            run={run}
            label={label}
            testId={testId}
            onPick={(picked) => {
              close();
              if (picked !== run) onChange(picked);
            }}
          />
        )}
      </Popover>
    </div>
  );
}

interface RunListProps {
  items: readonly RunItem[];
  run: string;
  label: string;
  testId: string;
  onPick: (run: string) => void;
}

function RunList({ items, run, label, testId, onPick }: RunListProps) {
  const [text, setText] = useState("");
  const lines = useMemo(() => runLines(items, text), [items, text]);
  const places = useMemo(() => lines.flatMap((line, place) => (line.kind === "run" ? [place] : [])), [lines]);
  const [at, setAt] = useState<string | null>(run);
  const box = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const list = useId();
  const virtual = useVirtualRows(box, lines.length);
  const placeOf = (wanted: string | null): number =>
    lines.findIndex((line) => line.kind === "run" && line.item.run === wanted);
  const current = placeOf(at) >= 0 ? placeOf(at) : (places[0] ?? -1);
  // Before it is painted: what is typed at once is in the field.
  useLayoutEffect(() => search.current?.focus(), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines put the chosen one elsewhere; scrollTo is a new function in each rendering.
  useEffect(() => {
    if (current >= 0) virtual.scrollTo(current);
  }, [current, lines]);

  const moveTo = (index: number): void => {
    const line = lines[places[Math.max(0, Math.min(places.length - 1, index))] ?? -1];
    if (line?.kind === "run") setAt(line.item.run);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const here = places.indexOf(current);
    const moves: Record<string, number> = {
      ArrowDown: here + 1,
      ArrowUp: here - 1,
      PageDown: here + 8,
      PageUp: here - 8,
    };
    const to =
      event.key === "Home" && event.ctrlKey
        ? 0
        : event.key === "End" && event.ctrlKey
          ? places.length - 1
          : moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    moveTo(to);
  };
  const newest = items.find((item) => item.newest);
  const line = lines[current];
  return (
    <>
      <form
        class="popover-search"
        onSubmit={(event) => {
          event.preventDefault();
          if (line?.kind === "run") onPick(line.item.run);
        }}
      >
        <input
          ref={search}
          type="search"
          role="combobox"
          autocomplete="off"
          spellcheck={false}
          aria-label={`Find a run by name, model or precision`}
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={current >= 0 ? `${list}-${current}` : undefined}
          placeholder="name, model, precision"
          data-testid={`${testId}-search`}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(null);
          }}
          onKeyDown={onKeyDown}
        />
        <span class="muted small" role="status">
          {places.length === items.length
            ? `${items.length} runs`
            : places.length === 0
              ? "no run"
              : `${places.length} of ${items.length}`}
        </span>
        {newest && newest.run !== run && text === "" && (
          <button
            type="button"
            class="button button-small"
            data-testid={`${testId}-newest`}
            title={newest.run}
            onClick={() => onPick(newest.run)}
          >
            Newest
          </button>
        )}
      </form>
      <div class="popover-list" ref={box} id={list} role="listbox" aria-label={label}>
        <div style={{ height: `${virtual.before}px` }} />
        {virtual.indices.map((place) => {
          const shown = lines[place];
          if (!shown) return null;
          if (shown.kind === "group") {
            return (
              <div key={`group ${shown.label}`} class="run-group" role="presentation">
                {shown.label || "others"} <span class="muted">{shown.runs}</span>
              </div>
            );
          }
          const { item } = shown;
          return (
            <div
              key={item.run}
              id={`${list}-${place}`}
              role="option"
              class="run-line"
              data-testid={`${testId}-option`}
              aria-selected={place === current}
              aria-current={item.run === run ? "true" : undefined}
              aria-setsize={places.length}
              aria-posinset={places.indexOf(place) + 1}
              title={[item.run, item.precision, item.facts].filter(Boolean).join(" · ")}
              onPointerMove={() => place !== current && setAt(item.run)}
              onClick={() => onPick(item.run)}
            >
              <span class="run-name">{item.name}</span>
              {item.newest && <span class="run-mark">newest</span>}
              <span class="run-facts">
                {[item.precision, item.facts, item.ranks > 1 ? `${item.ranks} ranks` : ""].filter(Boolean).join(" · ")}
              </span>
              <span class="run-step num">{item.stepNs === null ? "" : `${formatNs(item.stepNs)} recorded`}</span>
            </div>
          );
        })}
        <div style={{ height: `${virtual.after}px` }} />
        {places.length === 0 && <p class="table-empty">No run has these words in its name, model or precision.</p>}
      </div>
    </>
  );
}
