/** The filter of the address in, which rows of a page belong to it out. Until the server has said so, and where there is none, all do. */
import { profileQuery } from "../../api/queries";
import type { Related } from "../../api/types";
import { useResource } from "../../api/useResource";
import { useView } from "../../state/store";
import type { Subject } from "../../state/subject";
import { useMemo } from "preact/hooks";

export interface About {
  subject: Subject | null;
  /** Null while it is asked for, where it cannot be had, and without a filter. */
  related: Related | null;
  error: string | null;
  ops: ReadonlySet<string>;
  kernels: ReadonlySet<string>;
  modules: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export function useAbout(): About {
  const { about: subject, profile, range } = useView().state;
  const query = subject === null || profile.run === null ? null : { ...profileQuery(profile, range), kind: subject.kind, id: subject.id };
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
export function useOwn<Row>(rows: Row[], about: About, belongs: (row: Row, about: About) => boolean): Row[] {
  return useMemo(() => (about.related === null ? rows : rows.filter((row) => belongs(row, about))), [rows, about]);
}
