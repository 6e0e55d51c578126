/** What stands out in the iteration, next to its tracks: a click zooms to the event, marks it and opens its details. */
import type { Insight, TimelineSpot } from "../../api/types";

interface InsightsProps {
  insights: readonly Insight[];
  selected: string | null;
  onShow: (spot: TimelineSpot) => void;
}

export function Insights({ insights, selected, onShow }: InsightsProps) {
  if (insights.length === 0) return null;
  return (
    <ul class="timeline-insights" aria-label="Insights" data-testid="timeline-insights">
      {insights.map(({ title, text, spot }) => (
        <li key={spot.id}>
          <button
            type="button"
            class="timeline-insight"
            aria-pressed={spot.id === selected}
            title={`${title}: ${text}`}
            onClick={() => onShow(spot)}
          >
            <strong>{title}</strong>
            <span class="muted">{text}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
