/** One of many ranks: a grid of their numbers, the slowest one marked. Arrow keys move; digits go to a rank. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Popover } from "../../components/Popover";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { slowestRank, type RankItem } from "./ranks";

interface RankPickerProps {
  items: readonly RankItem[];
  rank: number | null;
  testId: string;
  onChange: (rank: number) => void;
}

const COLUMNS = 8;

export function RankPicker({ items, rank, testId, onChange }: RankPickerProps) {
  return (
    <div class="picker">
      <span aria-hidden="true">Rank</span>
      <Popover
        label={`Rank: ${rank ?? "none"}; choose another of ${items.length}`}
        testId={testId}
        value={String(rank ?? "")}
        face={rank ?? "–"}
      >
        {(close) => (
          <RankGrid
            items={items}
            rank={rank}
            testId={testId}
            onPick={(picked) => {
              close();
              if (picked !== rank) onChange(picked);
            }}
          />
        )}
      </Popover>
    </div>
  );
}

function RankGrid({
  items,
  rank,
  testId,
  onPick,
}: Omit<RankPickerProps, "onChange"> & { onPick: (rank: number) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const typed = useRef({ digits: "", at: 0 });
  const slowest = useMemo(() => slowestRank(items), [items]);
  const focusAt = (place: number): void =>
    box.current?.querySelectorAll<HTMLElement>("button")[Math.max(0, Math.min(items.length - 1, place))]?.focus();
  const here = Math.max(
    0,
    items.findIndex((item) => item.rank === rank),
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: only as it opens: then the focus is the reader's.
  useEffect(() => focusAt(here), []);

  const onKeyDown = (event: KeyboardEvent): void => {
    const place = [...(box.current?.querySelectorAll<Element>("button") ?? [])].indexOf(
      document.activeElement ?? document.body,
    );
    const moves: Record<string, number> = {
      ArrowRight: place + 1,
      ArrowLeft: place - 1,
      ArrowDown: place + COLUMNS,
      ArrowUp: place - COLUMNS,
      Home: 0,
      End: items.length - 1,
    };
    let to = moves[event.key];
    if (/^\d$/.test(event.key)) {
      const before = event.timeStamp - typed.current.at < 1000 ? typed.current.digits : "";
      typed.current = { digits: before + event.key, at: event.timeStamp };
      to = items.findIndex((item) => item.rank === Number(typed.current.digits));
    }
    if (to === undefined || to < 0) return;
    event.preventDefault();
    event.stopPropagation();
    focusAt(to);
  };
  return (
    <>
      <div
        class="rank-grid"
        ref={box}
        role="group"
        aria-label="Ranks"
        style={{ gridTemplateColumns: `repeat(${Math.min(COLUMNS, items.length)}, 1fr)` }}
        onKeyDown={onKeyDown}
      >
        {items.map((item) => {
          const isSlowest = item.rank === slowest?.rank;
          const step = item.stepNs === null ? "step time unknown" : `${formatNs(item.stepNs)} a recorded step`;
          return (
            <button
              type="button"
              key={item.rank}
              class={`rank ${isSlowest ? "rank-slowest" : ""}`}
              aria-pressed={item.rank === rank}
              aria-label={`Rank ${item.rank}, ${step}${isSlowest ? ", the slowest" : ""}`}
              title={step}
              tabIndex={item.rank === items[here]?.rank ? 0 : -1}
              data-testid={`${testId}-option`}
              onClick={() => onPick(item.rank)}
            >
              {item.rank}
            </button>
          );
        })}
      </div>
      <p class="muted small rank-note">
        {slowest ? (
          <>
            <span class="rank-slowest">{slowest.rank}</span> is the slowest: its steps take{" "}
            {formatPercent(slowest.percent)} longer than the median rank's.
          </>
        ) : (
          "No rank's steps stand out."
        )}
      </p>
    </>
  );
}
