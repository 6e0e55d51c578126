/** What is marked in the drawing, how much of it there is, and how to get from one to the next. */
import type { TimelineMatches } from "../../api/types";
import type { Resource } from "../../api/useResource";
import { formatNs } from "../../format/duration";
import { formatInteger } from "../../format/number";

interface FoundProps {
  wanted: Record<string, string | null> | null;
  resource: Resource<TimelineMatches>;
  byText: boolean;
  onClear: () => void;
  onStep: (step: 1 | -1) => void;
}

export function Found({ wanted, resource, byText, onClear, onStep }: FoundProps) {
  if (!wanted) return null;
  const found = resource.data;
  return (
    <span class="timeline-found" role="status" data-testid="timeline-found">
      {resource.error
        ? resource.error.message
        : found
          ? words(found, byText ? null : (wanted["op_type"] ?? `The selected ${wanted["op"] ? "op" : "kernel"}`))
          : resource.slow
            ? "Looking …"
            : ""}
      {found && found.count > 0 && (
        <>
          <button type="button" class="button button-small" onClick={() => onStep(-1)} aria-label="Previous match">
            ↑
          </button>
          <button
            type="button"
            class="button button-small"
            onClick={() => onStep(1)}
            aria-label="Next match"
            data-testid="timeline-next-match"
          >
            ↓
          </button>
        </>
      )}
      <button type="button" class="button button-small" onClick={onClear} aria-label="Clear the marks">
        ✕
      </button>
    </span>
  );
}

function words(found: TimelineMatches, of: string | null): string {
  if (found.count === 0) return of ? `${of} does not run in this iteration` : "Nothing has this in its name";
  const events = found.count === 1 ? "1 event" : `${formatInteger(found.count)} events`;
  const gpu = found.on_gpu > 0 ? `, ${formatInteger(found.on_gpu)} on the GPU taking ${formatNs(found.gpu_ns)}` : "";
  const cut = found.shown < found.count ? `; the first ${formatInteger(found.shown)} are marked` : "";
  return `${of ? `${of}: ` : ""}${events}${gpu}${cut}`;
}
