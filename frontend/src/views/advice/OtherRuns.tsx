/** Other runs of the same model, each a link to where Compare holds it to what was stated here. */
import type { RunEntry } from "../../api/types";
import { goTo } from "../../state/navigate";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { baseParam, candidateParam, sideOf } from "../compare/params";

const SHOWN = 4;

/** The runs of the model of `run`, the newest first, itself left out. */
export function runsOfSameModel(entries: readonly RunEntry[], run: string | null): string[] {
  const model = entries.find((entry) => entry.run === run)?.model;
  if (!model) return [];
  const others = entries.filter((entry) => entry.model === model && entry.run !== run);
  others.sort((a, b) => (b.created_unix_ns ?? 0) - (a.created_unix_ns ?? 0));
  return [...new Set(others.map((entry) => entry.run))];
}

export function OtherRuns({ entries }: { entries: RunEntry[] }) {
  const others = runsOfSameModel(entries, profileParam.value.run);
  if (others.length === 0) return null;
  return (
    <p class="other-runs" data-testid="other-runs">
      Compare shows the measured saving in{" "}
      {others.slice(0, SHOWN).map((run, index) => (
        <span key={run}>
          {index > 0 && ", "}
          <button
            type="button"
            class="link"
            onClick={() =>
              goTo(
                "compare",
                baseParam.to({ ...profileParam.value, range: rangeParam.value }),
                candidateParam.to(sideOf(run)),
              )
            }
          >
            {run}
          </button>
        </span>
      ))}
      {others.length > SHOWN && ` and ${others.length - SHOWN} more runs of this model`}
    </p>
  );
}
