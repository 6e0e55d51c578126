/** The rows behind a finding, each a link to the page where it can be seen. */
import type { EvidenceRow } from "../../api/types";
import { Value } from "../../components/Value";
import { evidenceTarget } from "./evidence";
import { goTo } from "../../state/navigate";

export function EvidenceList({ rows }: { rows: EvidenceRow[] }) {
  return (
    <>
      <h3>Evidence</h3>
      <ul class="evidence">
        {rows.map((row, index) => {
          const target = evidenceTarget(row);
          return (
            <li key={`${row.page} ${row.id} ${index}`}>
              {target ? (
                <button type="button" class="link" onClick={() => goTo(target.page, ...target.changes)}>
                  {row.label}
                </button>
              ) : (
                <span>{row.label}</span>
              )}
              <span class="evidence-values">
                {row.value_ns !== null && <Value value={row.value_ns} unit="ns" />}
                {row.percent !== null && <Value value={row.percent} unit="percent" />}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}
