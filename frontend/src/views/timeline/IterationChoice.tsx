/** Which iteration is drawn: the ones before and after, any other, or the median one again. */
import type { TimelinePage } from "../../api/types";
import { useFile } from "../../api/useResource";
import { formatNs } from "../../format/duration";
import { assign } from "../../state/param";
import { eventParam, iterationParam } from "./params";

export function IterationChoice({ data }: { data: TimelinePage }) {
  const { index } = data.iteration;
  const inFile = useFile() !== null;
  const show = (iteration: number | null): void => assign(iterationParam.to(iteration), eventParam.to(null));
  // An exported file holds the median one.
  if (data.range.total <= 1 || inFile) return null;
  return (
    <div class="timeline-iteration" role="group" aria-label="Iteration that is drawn">
      <button
        type="button"
        class="button button-small"
        disabled={index === 0}
        onClick={() => show(index - 1)}
        aria-label="Iteration before"
        data-testid="timeline-before"
      >
        ◀
      </button>
      <label class="picker">
        Iteration
        <select
          value={String(index)}
          onChange={(event) => show(Number(event.currentTarget.value))}
          data-testid="timeline-iteration"
        >
          {data.iterations.map((choice) => (
            <option key={choice.index} value={String(choice.index)}>
              {choice.number} · {formatNs(choice.duration_ns)}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        class="button button-small"
        disabled={index + 1 >= data.range.total}
        onClick={() => show(index + 1)}
        aria-label="Iteration after"
        data-testid="timeline-after"
      >
        ▶
      </button>
      {iterationParam.value !== null && (
        <button type="button" class="button button-small" onClick={() => show(null)}>
          Median
        </button>
      )}
    </div>
  );
}
