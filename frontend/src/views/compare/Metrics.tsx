/** The measures of both runs and the gain, with a word for which way it went. */
import type { CompareMetric } from "../../api/types";
import { Term } from "../../components/Term";
import { Value } from "../../components/Value";
import { formatRatio } from "../../format/number";

/** Whether `b` is better, worse or neither. Below one percent of change it is called the same. */
export function judge(metric: CompareMetric): "better" | "worse" | "same" | "" {
  const { a, b, better } = metric;
  if (a === null || b === null || better === "") return "";
  if (Math.abs(b - a) <= 0.01 * Math.max(Math.abs(a), Math.abs(b))) return "same";
  return b < a === (better === "lower") ? "better" : "worse";
}

const MARKS = { better: "▲ better", worse: "▼ worse", same: "= same", "": "" };

export function Metrics({ metrics }: { metrics: CompareMetric[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Measures of both runs">
      <table class="readings" data-testid="compare-metrics">
        <thead>
          <tr>
            <th scope="col">Measure</th>
            <th scope="col" class="right">Base</th>
            <th scope="col" class="right">Candidate</th>
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
                <td>{metric.label}</td>
                <td class="right"><Value value={metric.a} unit={metric.unit} /></td>
                <td class="right"><Value value={metric.b} unit={metric.unit} /></td>
                <td class="right">{metric.gain === null ? <span class="missing">–</span> : formatRatio(metric.gain)}</td>
                <td class={`change-${verdict || "none"}`}>{MARKS[verdict]}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
