/** The Kernels page: every kernel, copy and set in a table; the selected one with its full name, launch and ops. */
import { useMemo } from "preact/hooks";
import type { KernelRow, KernelsPage as KernelsData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { Card } from "../../components/Card";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { CutName } from "../../components/CutName";
import { PartsBar } from "../../components/PartsBar";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Verdict } from "../../components/Verdict";
import { DEFINITIONS } from "../../format/definitions";
import { ViewNote } from "../explore/ViewNote";
import { WHOLE_TIME, WorkIcicle } from "../explore/WorkIcicle";
import { WorkPane } from "../explore/WorkPane";
import { kernelParts } from "../explore/workNodes";
import { workView } from "../explore/workView";
import { useShownRows } from "../../components/table/useShownRows";
import { KernelFacts } from "./KernelFacts";
import { precisionOf } from "./precision";
import { assign } from "../../state/param";
import { kernelParam } from "../../state/sharedParams";
import { kernelsTable } from "./params";

const COLUMNS: Column<KernelRow>[] = [
  {
    id: "name",
    header: "Kernel",
    definition: DEFINITIONS.kernelName,
    value: (row) => row.name,
    cell: (row) =>
      row.told_by ? (
        <span class="told">
          <CutName name={row.short_name} />
          <span class="muted small told-by">{row.told_by}</span>
        </span>
      ) : (
        row.short_name
      ),
    width: "410px",
  },
  {
    id: "total",
    tasks: ["time", "tensor_cores", "shapes"],
    header: "Total",
    definition: DEFINITIONS.totalTime,
    value: (row) => row.total_ns,
    sums: true,
    unit: "ns",
    width: "96px",
  },
  {
    id: "share",
    bar: true,
    tasks: ["time", "tensor_cores", "shapes"],
    header: "%",
    definition: DEFINITIONS.kernelPercent,
    value: (row) => row.percent,
    unit: "percent",
    width: "110px",
  },
  {
    id: "calls",
    tasks: ["time", "tensor_cores", "shapes"],
    header: "Calls",
    definition: DEFINITIONS.calls,
    value: (row) => row.calls,
    sums: true,
    unit: "count",
    width: "76px",
  },
  {
    id: "average",
    tasks: ["time"],
    header: "Mean",
    definition: DEFINITIONS.averageTime,
    value: (row) => row.average_ns,
    unit: "ns",
    width: "90px",
  },
  {
    id: "tc",
    tasks: ["tensor_cores"],
    header: "Tensor Cores",
    definition: DEFINITIONS.kernelTc,
    value: (row) => row.tensor_core,
    filter: "choice",
    cell: (row) => <Verdict value={row.tensor_core} />,
    width: "112px",
  },
  {
    id: "precision",
    tasks: ["tensor_cores"],
    header: "Precision",
    definition: DEFINITIONS.kernelPrecision,
    value: precisionOf,
    filter: "choice",
    width: "100px",
  },
  {
    id: "family",
    tasks: ["time", "tensor_cores"],
    header: "Family",
    definition: DEFINITIONS.kernelFamily,
    value: (row) => row.family || null,
    filter: "choice",
    width: "130px",
  },
  {
    id: "occupancy",
    tasks: ["tensor_cores", "shapes"],
    header: "Occupancy",
    definition: DEFINITIONS.occupancy,
    value: (row) => row.occupancy_percent,
    unit: "percent",
    cell: (row) => (row.kind === "kernel" ? undefined : <span class="missing">–</span>),
    width: "100px",
  },
  {
    id: "min",
    tasks: ["time"],
    header: "Min",
    definition: DEFINITIONS.minTime,
    value: (row) => row.min_ns,
    unit: "ns",
    width: "90px",
  },
  {
    id: "max",
    tasks: ["time"],
    header: "Max",
    definition: DEFINITIONS.maxTime,
    value: (row) => row.max_ns,
    unit: "ns",
    width: "90px",
  },
  {
    id: "kind",
    tasks: ["shapes"],
    header: "Kind",
    definition: DEFINITIONS.kernelKind,
    value: (row) => row.kind,
    filter: "choice",
    width: "96px",
  },
  {
    id: "grid",
    tasks: ["shapes"],
    header: "Grid",
    definition: DEFINITIONS.grid,
    value: (row) => row.grid || null,
    missing: "–",
    width: "110px",
  },
  {
    id: "block",
    tasks: ["shapes"],
    header: "Block",
    definition: DEFINITIONS.block,
    value: (row) => row.block || null,
    missing: "–",
    width: "100px",
  },
  {
    id: "registers",
    tasks: ["shapes"],
    header: "Registers",
    definition: DEFINITIONS.registers,
    value: (row) => row.registers_per_thread,
    unit: "count",
    missing: "–",
    width: "90px",
  },
  {
    id: "shared",
    tasks: ["shapes"],
    header: "Shared memory",
    definition: DEFINITIONS.sharedMemory,
    value: (row) => row.shared_memory_bytes,
    unit: "bytes",
    missing: "–",
    width: "126px",
  },
  {
    id: "bytes",
    tasks: ["shapes"],
    header: "Bytes",
    definition: DEFINITIONS.bytes,
    value: (row) => row.bytes,
    sums: true,
    unit: "bytes",
    missing: "–",
    width: "96px",
  },
];

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
