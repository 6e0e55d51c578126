/** The Op types page: the ops by type, as a bar and as a table; a row leads to its ops. */
import { useMemo } from "preact/hooks";
import type { OpTypesPage as OpTypesData } from "../../api/types";
import { Card } from "../../components/Card";
import { CoverageLine } from "../../components/CoverageLine";
import { PartsBar } from "../../components/PartsBar";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { DEFINITIONS } from "../../format/definitions";
import { opTypeColumns } from "./columns";
import { opTypesTable } from "./params";
import { showType } from "./showType";

export function OpTypesPage({ data }: { data: OpTypesData }) {
  const columns = useMemo(() => opTypeColumns(data.has_gpu), [data.has_gpu]);
  const definition = data.has_gpu ? "opTypeGpu" : "opTypeCpu";
  const definitions = useMemo(
    () => new Map(data.by_type.map(({ key }) => [key, DEFINITIONS[definition]])),
    [data.by_type, definition],
  );
  return (
    <>
      <PageHead
        title="Op types"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      />
      {data.by_type.length > 0 && (
        <Card title={<Term of={definition}>{data.has_gpu ? "GPU" : "CPU"} time by op type</Term>} testId="ops-by-type">
          <PartsBar name="Time by op type" slices={data.by_type} context="op_type" definitions={definitions} />
        </Card>
      )}
      <DataTable
        name={`op types ${data.ref.run}`}
        testId="op-types-table"
        fill
        options={opTypesTable}
        columns={columns}
        rows={data.rows}
        rowId={(row) => row.op_type}
        onSelect={(row) => showType(row.op_type)}
        totalRows={data.total_rows}
      />
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
