/** What the Compare page shows of a bar, a module, an op: the rows of the page's data that belong to it. Pure. */
import type { CompareBucket, CompareModule, CompareOp, ComparePage } from "../../api/types";

/** Names a module in the address; what lies in no module has no path. */
export const keyOfModule = (module: string): string => module || ".";

/** How a module is called on the page. */
export const moduleLabel = (module: string): string => module || "outside modules";

/** Time of both sides in a bucket, or by all of it where none is chosen. */
export interface Times {
  a: number;
  b: number;
}

/** A module's or op's time in a bucket, by the clock. */
export function timesIn(
  row: { a_buckets: Record<string, number>; b_buckets: Record<string, number> },
  bucket: string,
): Times {
  return { a: row.a_buckets[bucket] ?? 0, b: row.b_buckets[bucket] ?? 0 };
}

const byChange =
  (bucket: string) =>
  (x: CompareModule | CompareOp, y: CompareModule | CompareOp): number => {
    const change = (row: CompareModule | CompareOp): number =>
      Math.abs(timesIn(row, bucket).b - timesIn(row, bucket).a);
    return change(y) - change(x);
  };

/** Modules with time in the bucket, those first that changed most; all where no bucket is chosen. */
export function modulesOf(data: ComparePage, bucket: string | null): CompareModule[] {
  if (bucket === null) return data.modules;
  return data.modules.filter((row) => bucket in row.a_buckets || bucket in row.b_buckets).sort(byChange(bucket));
}

/** Ops of a module with time in the bucket. */
export function opsOf(data: ComparePage, bucket: string | null, moduleKey: string): CompareOp[] {
  const ops = data.ops.filter((row) => keyOfModule(row.listed_in) === moduleKey);
  return bucket === null
    ? ops
    : ops.filter((row) => bucket in row.a_buckets || bucket in row.b_buckets).sort(byChange(bucket));
}

/** One bar of the waterfall: from the sum of the bars before to that with its own difference. */
export interface Step {
  bucket: CompareBucket;
  from: number;
  to: number;
}

/** Bars that lead from the base's step to the candidate's; buckets that neither run has are left out. */
export function waterfallSteps(data: ComparePage): Step[] {
  let at = data.buckets.reduce((sum, bucket) => sum + bucket.base_ns, 0);
  return data.buckets
    .filter((bucket) => bucket.base_ns > 0 || bucket.candidate_ns > 0)
    .map((bucket) => {
      const from = at;
      at += bucket.difference_ns;
      return { bucket, from, to: at };
    });
}
