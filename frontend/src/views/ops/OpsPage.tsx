/** The Ops page: every op in a table, above it as an icicle or under the roofline; the selected one in a pane next to it. */
import { useMemo } from "preact/hooks";
import { OpRow } from "../../api/columns";
import type { OpsPage as OpsData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { useShownRows } from "../../components/table/useShownRows";
import { ViewNote } from "../explore/ViewNote";
import { WorkIcicle } from "../explore/WorkIcicle";
import { WorkPane } from "../explore/WorkPane";
import { opParts } from "../explore/workNodes";
import { workView } from "../explore/workView";
import { RooflineCard } from "../roofline/RooflineCard";
import { DataTable } from "../../components/table/DataTable";
import { tableColumns } from "../../components/table/declared";
import { holdsOp } from "../modules/tree";
import { OpFacts } from "./OpFacts";
import { assign } from "../../state/param";
import { opParam } from "../../state/sharedParams";
import { opsTable } from "./params";

export function OpsPage({ data }: { data: OpsData }) {
  const columns = useMemo(() => tableColumns(OpRow, {}, data.has_gpu), [data.has_gpu]);
  const filter = usePageFilter();
  const inModule = filter.subject?.kind === "module" ? filter.subject.id : null;
  // What a module holds can be seen on the rows, at once and in an exported file.
  const held = useMemo(
    () => (inModule === null ? data.rows : data.rows.filter((row) => holdsOp(inModule, row))),
    [data.rows, inModule],
  );
  const own = useOwn(data.rows, filter, (row, { ops }) => ops.has(row.id));
  const rows = inModule === null ? own : held;
  const selected = data.rows.find((row) => row.id === opParam.value) ?? null;
  const view = workView("ops");
  const fitting = useShownRows(columns, rows, opsTable);
  const ids = useMemo(() => new Set(fitting.map(({ id }) => id)), [fitting]);
  const parts = useMemo(() => opParts(fitting, data.has_gpu), [fitting, data.has_gpu]);
  return (
    <>
      <PageHead
        title="Ops"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      <FilterChip filter={filter} shown={rows.length} known={data.rows.length} of="ops" />
      <ViewNote page="ops" hasGpu={data.has_gpu} />
      {view === "icicle" && (
        <WorkIcicle
          title="Time by module and op"
          whole="all ops"
          parts={parts}
          kinds={["op", "ops"]}
          hasGpu={data.has_gpu}
          share="Eligible time"
          selected={opParam.value}
          onSelect={(key) => ids.has(key) && assign(opParam.to(key))}
        />
      )}
      {view === "roofline" && data.has_gpu && (
        <RooflineCard
          shows={fitting === data.rows ? null : (op) => ids.has(op.id)}
          standsOut={opParam.value === null ? null : (op) => op.id === opParam.value}
          onOp={(id) => assign(opParam.to(id))}
        />
      )}
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
        {opParam.value !== null && (
          <WorkPane
            subject={{ kind: "op", id: opParam.value }}
            title={selected?.name ?? "This op"}
            hasGpu={data.has_gpu}
            onClose={() => assign(opParam.to(null))}
          >
            {selected && <OpFacts row={selected} hasGpu={data.has_gpu} />}
          </WorkPane>
        )}
      </div>
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
