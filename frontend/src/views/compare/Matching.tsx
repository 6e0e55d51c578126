/** How much of both runs was matched, and where the rest is. */
import type { ComparePage, CompareShares } from "../../api/types";
import { number, text } from "../../components/export/columns";
import { TableFiles } from "../../components/export/TableFiles";
import type { Column } from "../../components/table/columns";
import { Defined, Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { SLICES } from "../../format/definitions";

const ROWS: [key: Exclude<keyof CompareShares, "total_ns">, label: string][] = [
  ["matched", "Matched"],
  ["casts", "Casts"],
  ["scaler", "GradScaler"],
  ["compiled", "Regions of torch.compile"],
  ["unmatched", "Not matched"],
  ["unlinked", "Launched by no op"],
];

const TOTAL = ["matched_of_model", "Matched, of the model's own"] as const;

interface FileRow {
  label: string;
  base: number | null;
  candidate: number | null;
}

const FILE_COLUMNS: Column<FileRow>[] = [
  text("Time", (row) => row.label),
  number("Base", "percent", (row) => row.base),
  number("Candidate", "percent", (row) => row.candidate),
];

export function Matching({ data }: { data: ComparePage }) {
  const { base, candidate } = data.shares;
  return (
    <>
      <TableFiles
        name={`Matched ${data.basis === "gpu" ? "GPU time" : "CPU time of ops"}`}
        columns={FILE_COLUMNS}
        rows={[...ROWS, TOTAL].map(([key, label]) => ({ label, base: base[key], candidate: candidate[key] }))}
      />
      <table class="readings" data-testid="compare-matching">
        <thead>
          <tr>
            <th scope="col">{data.basis === "gpu" ? "Of the GPU time" : "Of the ops' CPU time"}</th>
            <th scope="col" class="right">
              Base
            </th>
            <th scope="col" class="right">
              Candidate
            </th>
          </tr>
        </thead>
        <tbody>
          {ROWS.filter(([key]) => key === "matched" || key === "unmatched" || base[key] || candidate[key]).map(
            ([key, label]) => (
              <tr key={key}>
                <td>
                  <Defined text={SLICES["matching"]![key]!}>{label}</Defined>
                </td>
                <td class="right">
                  <Value value={base[key]} unit="percent" />
                </td>
                <td class="right">
                  <Value value={candidate[key]} unit="percent" />
                </td>
              </tr>
            ),
          )}
          <tr class="strong">
            <td>
              <Term of="matched">Matched, of the model's own</Term>
            </td>
            <td class="right">
              <Value value={base.matched_of_model} unit="percent" />
            </td>
            <td class="right">
              <Value value={candidate.matched_of_model} unit="percent" />
            </td>
          </tr>
        </tbody>
      </table>
    </>
  );
}
