/** How the base's step becomes the candidate's: a bar for each bucket that grew or shrank, each leading to its modules. */
import * as columns from "../../api/columns";
import type { CompareBucket, ComparePage } from "../../api/types";
import { Drawing } from "../../components/export/Drawing";
import { tableColumns } from "../../components/table/declared";
import { Term } from "../../components/Term";
import { colourOf } from "../../format/colours";
import { exactNs, formatNs, formatNsDifference } from "../../format/duration";
import { formatInterval } from "../../format/number";
import { drill } from "./drillInto";
import { waterfallSteps } from "./drill";
import { bucketParam, pairModuleParam, pairParam } from "./params";

const WIDTH = 1000;
const HEIGHT = 18;

const COLUMNS = tableColumns(columns.CompareBucket);

export function Waterfall({ data }: { data: ComparePage }) {
  return (
    <Drawing name="Where the difference comes from" columns={COLUMNS} rows={data.buckets}>
      <Bars data={data} />
    </Drawing>
  );
}

function Bars({ data }: { data: ComparePage }) {
  const steps = waterfallSteps(data);
  const base = data.buckets.reduce((sum, bucket) => sum + bucket.base_ns, 0);
  const candidate = base + data.step_difference_ns;
  const scale = WIDTH / Math.max(1, base, candidate, ...steps.flatMap((step) => [step.from, step.to]));
  return (
    <div
      class="waterfall"
      role="group"
      aria-label="Waterfall from the base's step to the candidate's"
      data-testid="waterfall"
    >
      <div class="waterfall-row waterfall-head" aria-hidden="true">
        <span>Bucket</span>
        <span />
        <span class="right">Base</span>
        <span class="right">Candidate</span>
        <span class="right">Change</span>
      </div>
      <Total label="Base" testId="waterfall-base" ns={base} buckets={data.buckets} side="base_ns" scale={scale} />
      {steps.map(({ bucket, from, to }) => (
        <button
          key={bucket.key}
          type="button"
          class={`waterfall-row waterfall-bar ${bucketParam.value === bucket.key ? "selected" : ""}`}
          aria-pressed={bucketParam.value === bucket.key}
          data-testid={`bucket-${bucket.key}`}
          data-value={String(bucket.difference_ns)}
          onClick={() =>
            drill(
              data,
              bucketParam.to(bucketParam.value === bucket.key ? null : bucket.key),
              pairModuleParam.to(null),
              pairParam.to(null),
            )
          }
        >
          <span class="waterfall-label">
            <span class="swatch" style={{ background: colour(bucket.key) }} /> {bucket.label}
          </span>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
            <line class="waterfall-line" x1={from * scale} x2={from * scale} y1="0" y2={HEIGHT} />
            <rect
              x={Math.min(from, to) * scale}
              width={Math.max(2, Math.abs(to - from) * scale)}
              y="3"
              height={HEIGHT - 6}
              style={{ fill: colour(bucket.key) }}
            />
          </svg>
          <span class="num right" title={exactNs(bucket.base_ns)}>
            {formatNs(bucket.base_ns)}
          </span>
          <span class="num right" title={exactNs(bucket.candidate_ns)}>
            {formatNs(bucket.candidate_ns)}
          </span>
          <Change bucket={bucket} />
        </button>
      ))}
      <Total
        label="Candidate"
        testId="waterfall-candidate"
        ns={candidate}
        buckets={data.buckets}
        side="candidate_ns"
        scale={scale}
      />
      <p class="muted small">
        Pick a bar to see its modules. <Term of="noise">≈</Term>: no more than noise.
      </p>
    </div>
  );
}

const colour = (key: string): string => colourOf(key, 0, "account");

function Change({ bucket }: { bucket: CompareBucket }) {
  const { difference_ns: difference, low_ms: low, high_ms: high } = bucket;
  const interval =
    low === null || high === null
      ? "no interval: a run has a single iteration"
      : `95 % interval ${formatInterval(low * 1e6, high * 1e6, formatNs)}`;
  // Work that moved to Tensor Cores is neither gain nor loss by itself.
  const meaning =
    bucket.noise || bucket.key === "tensor_core"
      ? ""
      : difference > 0
        ? "change-worse"
        : difference < 0
          ? "change-better"
          : "";
  return (
    <span class={`num right ${meaning}`} title={`${exactNs(difference)}; ${interval}`}>
      {bucket.noise && difference !== 0 && <span aria-label="noise">≈ </span>}
      {formatNsDifference(difference)}
    </span>
  );
}

interface TotalProps {
  label: string;
  testId: string;
  ns: number;
  buckets: CompareBucket[];
  side: "base_ns" | "candidate_ns";
  scale: number;
}

/** A whole step, its buckets side by side. */
function Total({ label, testId, ns, buckets, side, scale }: TotalProps) {
  let at = 0;
  return (
    <div class="waterfall-row waterfall-total" data-testid={testId} data-value={String(ns)}>
      <strong>{label}</strong>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {buckets.map((bucket) => {
          const x = at * scale;
          at += bucket[side];
          return (
            <rect
              key={bucket.key}
              x={x}
              width={bucket[side] * scale}
              y="1"
              height={HEIGHT - 2}
              style={{ fill: colour(bucket.key) }}
            />
          );
        })}
      </svg>
      <span class="num right" title={exactNs(ns)}>
        {side === "base_ns" ? formatNs(ns) : ""}
      </span>
      <span class="num right" title={exactNs(ns)}>
        {side === "candidate_ns" ? formatNs(ns) : ""}
      </span>
      <span />
    </div>
  );
}
