/** Why eligible kernel time is off the Tensor Cores: each reason with its time, and what the known remedies should save. */
import * as columns from "../../api/columns";
import type { IneligibleWork, ReasonTotal } from "../../api/types";
import { TableFiles } from "../../components/export/TableFiles";
import { tableColumns } from "../../components/table/declared";
import { formatNs } from "../../format/duration";
import { useIterations } from "../../components/sums";
import { Sum, Value } from "../../components/Value";

/** As a sentence; nothing for kernels around a product, which have no remedy. */
function saving({ id, saved_ns, at_most_ns }: ReasonTotal, iterations: number): string {
  const parts = [];
  if (saved_ns !== null) parts.push(`should save ${formatNs(saved_ns / iterations)}`);
  if (at_most_ns !== null) parts.push(`could save at most ${formatNs(at_most_ns / iterations)}`);
  if (parts.length === 0) return id === "helpers" ? "" : " What a remedy could save is unknown.";
  const text = parts.join(" and ");
  return ` ${text.charAt(0).toUpperCase()}${text.slice(1)} of this kernel time.`;
}

const COLUMNS = tableColumns(columns.ReasonTotal, { text: null });

export function Reasons({ totals }: { totals: ReasonTotal[] }) {
  const iterations = useIterations();
  return (
    <ul class="reason-list">
      <TableFiles name="Why eligible time is off the Tensor Cores" columns={COLUMNS} rows={totals} />
      {totals.map((total) => (
        <li key={total.id}>
          <div class="reason-head">
            <strong>{total.label}</strong>
            <span class="muted small">{total.ops === 1 ? "1 op" : `${total.ops} ops`}</span>
            <span class="grow" />
            <span class="reason-values">
              <Sum value={total.time_ns} unit="ns" />
              <Value value={total.percent} unit="percent" />
            </span>
          </div>
          <p class="small">
            {total.text}
            {saving(total, iterations)}
          </p>
        </li>
      ))}
    </ul>
  );
}

export function Ineligible({ work }: { work: IneligibleWork[] }) {
  return (
    <ul class="reason-list">
      {work.map((item) => (
        <li key={`${item.op_type} ${item.text}`}>
          <div class="reason-head">
            <strong>{item.op_type}</strong>
            <span class="muted small">{item.label}</span>
            <span class="grow" />
            <Sum value={item.time_ns} unit="ns" />
          </div>
          <p class="small">{item.text}</p>
        </li>
      ))}
    </ul>
  );
}
