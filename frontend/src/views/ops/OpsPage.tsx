/** The Ops page: every op in a table, the selected one in a pane next to it. */
import { useMemo } from "preact/hooks";
import type { OpsPage as OpsData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { opColumns } from "../opColumns";
import { holdsOp } from "../modules/tree";
import { OpPane } from "./OpPane";
import { assign } from "../../state/param";
import { opParam } from "../../state/sharedParams";
import { opsTable } from "./params";

export function OpsPage({ data }: { data: OpsData }) {
  const columns = useMemo(() => opColumns(data.has_gpu), [data.has_gpu]);
  const filter = usePageFilter();
  const inModule = filter.subject?.kind === "module" ? filter.subject.id : null;
  // What a module holds can be seen on the rows, at once and in an exported file.
  const held = useMemo(
    () => (inModule === null ? data.rows : data.rows.filter((row) => holdsOp(inModule, row))),
    [data.rows, inModule],
  );
  const own = useOwn(data.rows, filter, (row, { ops }) => ops.has(row.id));
  const rows = inModule === null ? own : held;
  return (
    <>
      <PageHead
        title="Ops"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      <FilterChip filter={filter} shown={rows.length} known={data.rows.length} of="ops" />
      <div class={opParam.value === null ? "" : "split"}>
        <DataTable
          name={`ops ${data.ref.run}`}
          testId="ops-table"
          fill
          options={opsTable}
          columns={columns}
          rows={rows}
          rowId={(row) => row.id}
          selected={opParam.value}
          onSelect={(row) => assign(opParam.to(row.id === opParam.value ? null : row.id))}
          totalRows={rows === data.rows ? data.total_rows : rows.length}
        />
        {opParam.value !== null && <OpPane id={opParam.value} hasGpu={data.has_gpu} />}
      </div>
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
