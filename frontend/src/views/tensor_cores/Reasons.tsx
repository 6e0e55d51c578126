/** Why eligible kernel time is off the Tensor Cores: each reason with its time, and what the known remedies should save. */
import type { IneligibleWork, ReasonTotal } from "../../api/types";
import { formatNs } from "../../format/duration";
import { Value } from "../../components/Value";

export function Reasons({ totals }: { totals: ReasonTotal[] }) {
  return (
    <ul class="reason-list">
      {totals.map((total) => (
        <li key={total.id}>
          <div class="reason-head">
            <strong>{total.label}</strong>
            <span class="muted small">{total.ops === 1 ? "1 op" : `${total.ops} ops`}</span>
            <span class="grow" />
            <span class="reason-values">
              <Value value={total.time_ns} unit="ns" />
              <Value value={total.percent} unit="percent" />
            </span>
          </div>
          <p class="small">
            {total.text}
            {total.saved_ns !== null && ` Should save ${formatNs(total.saved_ns)} of this kernel time.`}
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
            <Value value={item.time_ns} unit="ns" />
          </div>
          <p class="small">{item.text}</p>
        </li>
      ))}
    </ul>
  );
}
