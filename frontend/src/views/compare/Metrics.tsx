/** The measures of both runs and the gain, with a word for which way it went. */
import type { CompareMetric } from "../../api/types";
import { number, text } from "../../components/export/columns";
import { TableFiles } from "../../components/export/TableFiles";
import type { Column } from "../../components/table/columns";
import { Defined, Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { DEFINITIONS, SLICES } from "../../format/definitions";

/** Whether `b` is better, worse or neither. Below one percent of change it is called the same. */
export function judge(metric: CompareMetric): "better" | "worse" | "same" | "" {
  const { a, b, better } = metric;
  if (a === null || b === null || better === "") return "";
  if (Math.abs(b - a) <= 0.01 * Math.max(Math.abs(a), Math.abs(b))) return "same";
  return b < a === (better === "lower") ? "better" : "worse";
}

const COLUMNS: Column<CompareMetric>[] = [
  text("Measure", (metric) => metric.label),
  text("Unit", (metric) => metric.unit, "", "80px"),
  number("Base", "count", (metric) => metric.a),
  number("Candidate", "count", (metric) => metric.b),
  number("Gain", "ratio", (metric) => metric.gain, DEFINITIONS.gain),
];

const MARKS = { better: "▲ better", worse: "▼ worse", same: "= same", "": "" };

export function Metrics({ metrics }: { metrics: CompareMetric[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Measures of both runs">
      <TableFiles name="Measures of both runs" columns={COLUMNS} rows={metrics} />
      <table class="readings" data-testid="compare-metrics">
        <thead>
          <tr>
            <th scope="col">Measure</th>
            <th scope="col" class="right">
              Base
            </th>
            <th scope="col" class="right">
              Candidate
            </th>
            <th scope="col" class="right">
              <Term of="gain">Gain</Term>
            </th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          {metrics.map((metric) => {
            const verdict = judge(metric);
            return (
              <tr key={metric.key} data-testid={`metric-${metric.key}`}>
                <td>
                  <Defined text={SLICES["compare"]![metric.key]!}>{metric.label}</Defined>
                </td>
                <td class="right">
                  <Value value={metric.a} unit={metric.unit} />
                </td>
                <td class="right">
                  <Value value={metric.b} unit={metric.unit} />
                </td>
                <td class="right">
                  <Value value={metric.gain} unit="ratio" missing="–" />
                </td>
                <td class={`change-${verdict || "none"}`}>{MARKS[verdict]}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
