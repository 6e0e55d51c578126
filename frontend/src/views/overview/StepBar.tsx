/** A step without the profiler as one bar of its length, by what it consists of, with its list in the same order. */
import type { Overview, PerformanceSummary, Slice } from "../../api/types";
import { Card } from "../../components/Card";
import { SLICES as COLUMNS } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Defined, Term } from "../../components/Term";
import { colourOf } from "../../format/colours";
import { SLICES } from "../../format/definitions";
import { exactNs, formatNs } from "../../format/duration";
import { formatInterval, formatPercent } from "../../format/number";
import { Layers } from "./Layers";

/** Whether the step is the recorded one, profiler included: then it has no interval. */
export const isAsRecorded = ({ step_source }: PerformanceSummary): boolean =>
  step_source === "recorded" || step_source === "whole";

/** What takes less of the step has no line of its own in the list. */
export const LEAST_PERCENT = 1;

/** The parts with a line of their own: all but the small ones, where these are several. */
export function listedParts(account: readonly Slice[]): Slice[] {
  const taken = account.filter((slice) => slice.value_ns);
  const large = taken.filter((slice) => (slice.percent ?? 0) >= LEAST_PERCENT);
  return taken.length - large.length > 1 ? large : taken;
}

/** As short as possible, but neither 0 nor 100 where it is not; the exact share is in the title. */
function shortPercent(value: number | null): string {
  if (value === null || value === 0 || value === 100) return formatPercent(value);
  if (value < 0.1) return "<0.1 %";
  if (value > 99.9) return ">99.9 %";
  return `${value.toFixed(value < 10 || value > 99 ? 1 : 0)} %`;
}

export function StepBar({ data }: { data: Overview }) {
  const { summary, account } = data;
  const step = summary.average_iteration_ns;
  const interval = isAsRecorded(summary)
    ? ""
    : `; 95 % interval ${formatInterval(summary.step_low_ns, summary.step_high_ns, formatNs)}`;
  return (
    <Card
      class="step-account"
      testId="overview-account"
      title={
        <>
          {summary.step_source === "whole" ? "The recording" : <Term of="stepTime" />}{" "}
          <span class="step-length">
            {data.trust.verdict === "poor" && summary.step_source !== "whole" && (
              <span title="The recording is not reliable">≈ </span>
            )}
            <span
              class="num"
              data-testid="overview-step-time"
              data-value={String(step)}
              title={`${exactNs(step)}: ${data.step_words}${interval}`}
            >
              {formatNs(step)}
            </span>
          </span>{" "}
          {/* What was timed needs no words; what is an estimate looks like one. */}
          {summary.step_source !== "measured" && <span class="step-source muted">{data.step_words.split(";")[0]}</span>}
        </>
      }
    >
      <Drawing name="What a step consists of" columns={COLUMNS} rows={account}>
        <Bar account={account} />
        <List account={account} step={step} />
      </Drawing>
      <Layers data={data} />
      {!data.has_gpu && <p class="muted">No GPU in this recording: GPU places show nothing.</p>}
    </Card>
  );
}

const colour = (slice: Slice): string => colourOf(slice.key, 0, "account");

const shareOf = (slice: Slice, step: number): string =>
  `${exactNs(slice.value_ns)}, ${formatPercent(slice.percent)} of a step without the profiler (${formatNs(step)})`;

function Bar({ account }: { account: Slice[] }) {
  const sum = account.reduce((total, slice) => total + (slice.value_ns ?? 0), 0);
  return (
    <div class="stacked-bar step-bar" aria-hidden="true">
      {account.map((slice) =>
        slice.value_ns ? (
          <span
            key={slice.key}
            style={{ width: `${(slice.value_ns / sum) * 100}%`, background: colour(slice) }}
            title={`${slice.label}: ${formatNs(slice.value_ns)}, ${formatPercent(slice.percent)} of the step`}
          />
        ) : null,
      )}
    </div>
  );
}

function List({ account, step }: { account: Slice[]; step: number }) {
  const listed = listedParts(account);
  const grouped = account.filter((slice) => slice.value_ns && !listed.includes(slice));
  const rest = grouped.reduce((sum, slice) => sum + (slice.value_ns ?? 0), 0);
  return (
    <ul class="step-legend">
      {listed.map((slice) => (
        <li key={slice.key} data-testid={`account-${slice.key}`} data-value={String(slice.value_ns)}>
          <span class="swatch" style={{ background: colour(slice) }} />
          <span class="step-legend-label">
            <Defined text={SLICES["account"]?.[slice.key] ?? slice.label}>{slice.label}</Defined>
          </span>
          <span class="num" title={shareOf(slice, step)}>
            {formatNs(slice.value_ns)} <span class="muted">{shortPercent(slice.percent)}</span>
          </span>
        </li>
      ))}
      {grouped.length > 0 && (
        <li data-testid="account-rest">
          <span class="step-legend-label">
            <Defined text={grouped.map((slice) => `${slice.label}: ${formatNs(slice.value_ns)}`).join("; ")}>
              {grouped.length} others
            </Defined>
          </span>
          <span class="num" title={`${exactNs(rest)}, of a step without the profiler (${formatNs(step)})`}>
            {formatNs(rest)} <span class="muted">{shortPercent((100 * rest) / step)}</span>
          </span>
        </li>
      )}
    </ul>
  );
}
