/** The Op types page: the ops by type as a table, above it as a bar, an icicle or their ops under the roofline; the selected one in a pane. */
import { useMemo } from "preact/hooks";
import { OpTypeRow } from "../../api/columns";
import type { OpTypesPage as OpTypesData } from "../../api/types";
import { Card } from "../../components/Card";
import { CoverageLine } from "../../components/CoverageLine";
import { PartsBar } from "../../components/PartsBar";
import { useShownRows } from "../../components/table/useShownRows";
import { ViewNote } from "../explore/ViewNote";
import { WorkPane } from "../explore/WorkPane";
import { workView } from "../explore/workView";
import { RooflineCard } from "../roofline/RooflineCard";
import { assign } from "../../state/param";
import { opTypeParam } from "../../state/sharedParams";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { DEFINITIONS } from "../../format/definitions";
import { opTypesTable } from "./params";
import { OpTypeFacts } from "./OpTypeFacts";
import { TypesIcicle } from "./TypesIcicle";

export function OpTypesPage({ data }: { data: OpTypesData }) {
  const definition = data.has_gpu ? "opTypeGpu" : "opTypeCpu";
  const columns = useMemo(() => {
    const percent = data.has_gpu ? {} : { header: "CPU %", definition: DEFINITIONS.opTypeCpu };
    return tableColumns(OpTypeRow, { percent }, data.has_gpu);
  }, [data.has_gpu]);
  const definitions = useMemo(
    () => new Map(data.by_type.map(({ key }) => [key, DEFINITIONS[definition]])),
    [data.by_type, definition],
  );
  const selected = data.rows.find((row) => row.op_type === opTypeParam.value) ?? null;
  const view = workView("op_types");
  const fitting = useShownRows(columns, data.rows, opTypesTable);
  const types = useMemo(() => new Set(fitting.map(({ op_type }) => op_type)), [fitting]);
  return (
    <>
      <PageHead
        title="Op types"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      <ViewNote page="op_types" hasGpu={data.has_gpu} />
      {view === "table" && data.by_type.length > 0 && (
        <Card title={<Term of={definition}>{data.has_gpu ? "GPU" : "CPU"} time by op type</Term>} testId="ops-by-type">
          <PartsBar name="Time by op type" slices={data.by_type} context="op_type" definitions={definitions} />
        </Card>
      )}
      {view === "icicle" && <TypesIcicle types={types} selected={opTypeParam.value} />}
      {view === "roofline" && data.has_gpu && (
        <RooflineCard
          shows={fitting === data.rows ? null : (op) => types.has(op.op_type)}
          standsOut={selected === null ? null : (op) => op.op_type === selected.op_type}
        />
      )}
      <div class={selected ? "split" : ""}>
        <DataTable
          name={`op types ${data.ref.run}`}
          testId="op-types-table"
          fill
          options={opTypesTable}
          columns={columns}
          rows={data.rows}
          rowId={(row) => row.op_type}
          selected={opTypeParam.value}
          onSelect={(row) => assign(opTypeParam.to(row.op_type === opTypeParam.value ? null : row.op_type))}
          totalRows={data.total_rows}
        />
        {selected && (
          <WorkPane
            subject={{ kind: "op_type", id: selected.op_type }}
            title={selected.op_type}
            hasGpu={data.has_gpu}
            onClose={() => assign(opTypeParam.to(null))}
          >
            <OpTypeFacts row={selected} hasGpu={data.has_gpu} />
          </WorkPane>
        )}
      </div>
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
