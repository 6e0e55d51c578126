/** The filter of the address in, which rows of a page belong to it out. Until the server has said so, and where there is none, all do. */
import { profileQuery } from "../../api/queries";
import type { Related } from "../../api/types";
import { useResource } from "../../api/useResource";
import type { Subject } from "../../state/subject";
import { useMemo } from "preact/hooks";
import { filterParam, profileParam, rangeParam } from "../../state/sharedParams";
import { useParam } from "../../state/param";

export interface PageFilter {
  subject: Subject | null;
  /** Null while it is asked for, where it cannot be had, and without a filter. */
  related: Related | null;
  error: string | null;
  ops: ReadonlySet<string>;
  kernels: ReadonlySet<string>;
  modules: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export function usePageFilter(): PageFilter {
  const subject = useParam(filterParam);
  const profile = profileParam.value;
  const range = rangeParam.value;
  const query =
    subject === null || profile.run === null
      ? null
      : { ...profileQuery(profile, range), kind: subject.kind, id: subject.id };
  const { data, error } = useResource("related", query, subject ? `${subject.kind} ${subject.id}` : "");
  return useMemo(
    () => ({
      subject,
      related: data,
      error: error?.message ?? null,
      ops: data ? new Set(data.ops) : NONE,
      kernels: data ? new Set(data.kernels) : NONE,
      modules: data ? new Set(data.modules) : NONE,
    }),
    [subject, data, error],
  );
}

/** The rows that belong to the filter; the same array where there is none, so that tables keep their order. */
export function useOwn<Row>(
  rows: Row[],
  filter: PageFilter,
  belongs: (row: Row, filter: PageFilter) => boolean,
): Row[] {
  // biome-ignore lint/correctness/useExhaustiveDependencies: callers pass the same rule in each rendering, as a new function.
  return useMemo(() => (filter.related === null ? rows : rows.filter((row) => belongs(row, filter))), [rows, filter]);
}
