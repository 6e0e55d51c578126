/** Runs of the same model in the precision that a finding advises, each a link to where Compare measures the change. */
import type { RunEntry } from "../../api/types";
import { goTo } from "../../state/navigate";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { baseParam, candidateParam, sideOf } from "../compare/params";

const SHOWN = 4;

/** The precisions that show whether a rule's change pays: of other changes a list of runs does not know the effect. */
const SHOWN_BY: Record<string, readonly string[]> = {
  amp_not_used: ["fp16", "bf16"],
  tf32_off: ["tf32"],
};

/** The runs of the model of `run` with the change of a rule, the newest first, itself left out. */
export function runsWithChange(entries: readonly RunEntry[], run: string | null, rule: string): string[] {
  const own = entries.find((entry) => entry.run === run);
  const wanted = SHOWN_BY[rule] ?? [];
  const changed = (entry: RunEntry) => wanted.includes(entry.precision ?? "");
  if (!own?.model || changed(own)) return [];
  const others = entries.filter((entry) => entry.model === own.model && entry.run !== run && changed(entry));
  others.sort((a, b) => (b.created_unix_ns ?? 0) - (a.created_unix_ns ?? 0));
  return [...new Set(others.map((entry) => entry.run))];
}

export function OtherRuns({ entries, rule }: { entries: RunEntry[]; rule: string }) {
  const others = runsWithChange(entries, profileParam.value.run, rule);
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
      {others.length > SHOWN && ` and ${others.length - SHOWN} more`}
    </p>
  );
}
