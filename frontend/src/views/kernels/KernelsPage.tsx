/** The Kernels page: every kernel, copy and set in a table; the selected one with its full name, launch and ops. */
import { useMemo } from "preact/hooks";
import { KernelRow } from "../../api/columns";
import type { KernelsPage as KernelsData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { Card } from "../../components/Card";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { CutName } from "../../components/CutName";
import { PartsBar } from "../../components/PartsBar";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { ViewNote } from "../explore/ViewNote";
import { WHOLE_TIME, WorkIcicle } from "../explore/WorkIcicle";
import { WorkPane } from "../explore/WorkPane";
import { kernelParts } from "../explore/workNodes";
import { workView } from "../explore/workView";
import { useShownRows } from "../../components/table/useShownRows";
import { KernelFacts } from "./KernelFacts";
import { assign } from "../../state/param";
import { kernelParam } from "../../state/sharedParams";
import { kernelsTable } from "./params";

const COLUMNS = tableColumns(KernelRow, {
  name: {
    cell: (row) =>
      row.told_by ? (
        <span class="told">
          <CutName name={row.short_name} />
          <span class="muted small told-by">{row.told_by}</span>
        </span>
      ) : (
        row.short_name
      ),
  },
});

export function KernelsPage({ data }: { data: KernelsData }) {
  const selected = data.rows.find((row) => row.id === kernelParam.value) ?? null;
  const filter = usePageFilter();
  const own = useOwn(data.rows, filter, (row, { kernels }) => kernels.has(row.id));
  // An exported file has the rows of all ops alone.
  const scoped = data.scope !== null;
  const rows = scoped ? data.rows : own;
  const view = workView("kernels");
  const fitting = useShownRows(COLUMNS, rows, kernelsTable);
  const parts = useMemo(() => kernelParts(fitting), [fitting]);
  if (!data.has_gpu && data.rows.length === 0) {
    return <PageHead title="Kernels" headline={data.headline} range={data.range} />;
  }
  return (
    <>
      <PageHead
        title="Kernels"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      <ViewNote page="kernels" hasGpu={data.has_gpu} />
      {view === "icicle" && (
        <WorkIcicle
          title="Time by family and kernel"
          whole="all kernels"
          parts={parts}
          kinds={["kernel", "kernels"]}
          hasGpu
          share={WHOLE_TIME}
          selected={kernelParam.value}
          onSelect={(key) => data.rows.some((row) => row.id === key) && assign(kernelParam.to(key))}
        />
      )}
      {view !== "icicle" && data.by_family.length > 0 && (
        <Card title={<Term of="kernelFamily">Kernel time by family</Term>} testId="kernels-by-family">
          <PartsBar name="Kernel time by family" slices={data.by_family} context="family" />
        </Card>
      )}
      <FilterChip
        filter={filter}
        shown={rows.length}
        known={data.rows.length}
        alone={scoped}
        of={
          scoped ? "kernels, with their calls and times in it alone" : "kernels, with their calls and times in all ops"
        }
        none="It launched no kernel in these iterations."
      />
      <div class={selected ? "split" : ""}>
        <DataTable
          name={`kernels ${data.ref.run}`}
          testId="kernels-table"
          fill
          options={kernelsTable}
          columns={COLUMNS}
          rows={rows}
          rowId={(row) => row.id}
          selected={kernelParam.value}
          onSelect={(row) => assign(kernelParam.to(row.id === kernelParam.value ? null : row.id))}
          totalRows={rows === data.rows ? data.total_rows : rows.length}
        />
        {selected && (
          <WorkPane
            subject={{ kind: "kernel", id: selected.id }}
            title={selected.short_name}
            hasGpu
            onClose={() => assign(kernelParam.to(null))}
          >
            <KernelFacts row={selected} />
          </WorkPane>
        )}
      </div>
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
