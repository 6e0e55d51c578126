/** The page Compiled code: launches of torch.compile's wrappers in order and as a table, the time by module, what compilation costs. */
import { useMemo, useState } from "preact/hooks";
import * as columns from "../../api/columns";
import type { CompiledPage as CompiledData } from "../../api/types";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Icicle } from "../../components/icicle/Icicle";
import { IciclePath } from "../../components/icicle/IciclePath";
import type { IcicleNode } from "../../components/icicle/layout";
import type { Column } from "../../components/table/columns";
import { DataTable, type DataTableProps } from "../../components/table/DataTable";
import { tableColumns } from "../../components/table/declared";
import { PageHead } from "../../features/PageHead";
import { formatNs } from "../../format/duration";
import { useZoom } from "../explore/useZoom";
import { wayTo } from "../explore/workNodes";
import { compiledTable } from "./params";
import { launchKey, sequenceOf } from "./sequence";

const LAUNCHES = tableColumns(columns.CompiledRow);
const MODULES = tableColumns(columns.CompiledModuleRow);
const BREAKS = tableColumns(columns.BreakRow);
const SKIPS = tableColumns(columns.SkipRow);
const COMPILATIONS = tableColumns(columns.CompilationRow);
const DRAWN: Column<IcicleNode>[] = [
  text("Name", (node) => node.label),
  { ...number<IcicleNode>("Time", "ns", (node) => node.ns), sums: true },
];

export function CompiledPage({ data }: { data: CompiledData }) {
  const run = data.ref.run;
  const [selected, setSelected] = useState<string | null>(null);
  return (
    <>
      <PageHead title="Compiled code" headline={data.headline} range={data.range} />
      <div class="grid">
        {data.rows.length > 0 && <Sequence data={data} selected={selected} onSelect={setSelected} />}
        {data.rows.length > 0 && (
          <Card title="Launches" testId="compiled-launches">
            <DataTable
              name={`compiled ${run}`}
              options={compiledTable}
              columns={LAUNCHES}
              rows={data.rows}
              rowId={launchKey}
              selected={selected}
              onSelect={(row) => setSelected(launchKey(row))}
              totalRows={data.total_rows}
            />
          </Card>
        )}
        <Part
          title="By module"
          testId="compiled-modules"
          name={`compiled by module ${run}`}
          columns={MODULES}
          rows={data.modules}
          rowId={(row) => row.module}
          totalRows={data.total_modules}
        />
        <Part
          title="Graph breaks"
          testId="compiled-breaks"
          name={`graph breaks ${run}`}
          columns={BREAKS}
          rows={data.graph_breaks}
          rowId={reasonKey}
        />
        <Part
          title="Skipped CUDA graphs"
          testId="compiled-skips"
          name={`skipped CUDA graphs ${run}`}
          columns={SKIPS}
          rows={data.skips}
          rowId={reasonKey}
        />
        <Part
          title={`Compilations: ${formatNs(data.compilations_ns)}`}
          testId="compiled-compilations"
          name={`compilations ${run}`}
          columns={COMPILATIONS}
          rows={data.compilations}
          rowId={(row) => row.place}
        />
      </div>
    </>
  );
}

const reasonKey = (row: { place: string; reason: string }): string => `${row.place} ${row.reason}`;

interface PartProps<Row> extends DataTableProps<Row> {
  title: string;
  testId: string;
}

/** A table with a title; nothing without rows. */
function Part<Row>({ title, testId, ...table }: PartProps<Row>) {
  if (table.rows.length === 0) return null;
  return (
    <Card title={title} testId={testId}>
      <DataTable {...table} />
    </Card>
  );
}

interface SequenceProps {
  data: CompiledData;
  selected: string | null;
  onSelect: (key: string) => void;
}

function Sequence({ data, selected, onSelect }: SequenceProps) {
  const root = useMemo(() => sequenceOf(data.rows), [data.rows]);
  const { top, around, above, zoomTo } = useZoom(root);
  const open = (key: string): void => {
    const found = wayTo(root, key);
    if (found[found.length - 1]!.below.length > 0) zoomTo(key);
    else onSelect(key);
  };
  return (
    <Card title="Launches in the order of their wrappers" class="icicle-card" testId="compiled-sequence">
      <div class="icicle-bar">
        <IciclePath
          around={around}
          shown={top.label}
          name="Graphs and modules around this one"
          testId="compiled-path"
          onSelect={zoomTo}
        />
      </div>
      <Drawing name="Launches of compiled code" columns={DRAWN} rows={[top, ...top.below]}>
        <Icicle
          top={top}
          above={above}
          selected={selected}
          name="Launches"
          kinds={["launch", "launches"]}
          empty="Nothing of it ran."
          testId="compiled-icicle"
          onSelect={open}
        />
        <p class="muted small">
          Width: time{data.has_gpu ? " on the GPU" : ""}. A colour for each block of the model; hatched kernels compute
          ops of several modules.
        </p>
      </Drawing>
    </Card>
  );
}
