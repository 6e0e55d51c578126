/** The columns of the Launches page's tables. */
import * as columns from "../../api/columns";
import type { Category, GapRow, PaceRow, Slice, SyncRow } from "../../api/types";
import { CutName } from "../../components/CutName";
import { StackedBar } from "../../components/StackedBar";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";

/** The page's causes with the time that one row has of each. */
function slicesOf(causes: Slice[], times: number[]): Slice[] {
  return causes.map(({ key, label }, index) => ({ key, label, value_ns: times[index] ?? 0, percent: null }));
}

function largest(causes: Slice[], times: number[]): string {
  const most = Math.max(...times);
  return most > 0 ? (causes[times.indexOf(most)]?.label ?? "") : "–";
}

function Causes({ causes, times, total }: { causes: Slice[]; times: number[]; total: number }) {
  return (
    <span class="gap-bar">
      <span>{largest(causes, times)}</span>
      {total > 0 && <StackedBar slices={slicesOf(causes, times)} scaleNs={total} context="account" />}
    </span>
  );
}

/** `causes` in the order of the rows' times. */
export const paceColumns = (causes: Slice[], severalGpus: boolean): Column<PaceRow>[] =>
  tableColumns(columns.PaceRow, {
    ...(!severalGpus && { gpu: null }),
    idle_by_cause_ns: {
      value: (row) => largest(causes, row.idle_by_cause_ns),
      cell: (row) => <Causes causes={causes} times={row.idle_by_cause_ns} total={row.idle_ns} />,
    },
  });

export function gapColumns(causes: Slice[], kinds: Category[], severalGpus: boolean): Column<GapRow>[] {
  const labels = new Map(kinds.map(({ key, label }) => [key, label]));
  return tableColumns(columns.GapRow, {
    ...(!severalGpus && { gpu: null }),
    cause: {
      value: (row) => largest(causes, row.cause_ns),
      cell: (row) => <Causes causes={causes} times={row.cause_ns} total={row.duration_ns} />,
    },
    kind: { value: (row) => labels.get(row.kind) ?? null },
    op: { cell: (row) => (row.op ? <CutName name={row.op} /> : undefined) },
  });
}

/** The op that made the call; for a call straight from a module's Python code the module. */
const callerOf = (row: SyncRow): string | null => row.op || (row.module ? `${row.module} (outside ops)` : null);

export const SYNC_COLUMNS = tableColumns(columns.SyncRow, {
  op: {
    value: callerOf,
    cell: (row) => (callerOf(row) ? <CutName name={callerOf(row)!} /> : undefined),
  },
});

export const KERNEL_COLUMNS = tableColumns(columns.LaunchedKernel, { name: { cell: (row) => row.short_name } });
