/** How much of both runs was matched, and where the rest is. */
import type { ComparePage, CompareShares } from "../../api/types";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";

const ROWS: [key: Exclude<keyof CompareShares, "total_ns">, label: string][] = [
  ["matched", "Matched"],
  ["casts", "Casts"],
  ["scaler", "GradScaler"],
  ["compiled", "Regions of torch.compile"],
  ["unmatched", "Not matched"],
  ["unlinked", "Launched by no op"],
];

export function Matching({ data }: { data: ComparePage }) {
  const { base, candidate } = data.shares;
  return (
    <table class="readings" data-testid="compare-matching">
      <thead>
        <tr>
          <th scope="col">{data.basis === "gpu" ? "Of the GPU time" : "Of the ops' CPU time"}</th>
          <th scope="col" class="right">Base</th>
          <th scope="col" class="right">Candidate</th>
        </tr>
      </thead>
      <tbody>
        {ROWS.filter(([key]) => key === "matched" || key === "unmatched" || base[key] || candidate[key]).map(([key, label]) => (
          <tr key={key}>
            <td>{label}</td>
            <td class="right"><Value value={base[key]} unit="percent" /></td>
            <td class="right"><Value value={candidate[key]} unit="percent" /></td>
          </tr>
        ))}
        <tr class="strong">
          <td>
            <Term of="matched">Matched, of the model's own</Term>
          </td>
          <td class="right"><Value value={base.matched_of_model} unit="percent" /></td>
          <td class="right"><Value value={candidate.matched_of_model} unit="percent" /></td>
        </tr>
      </tbody>
    </table>
  );
}
