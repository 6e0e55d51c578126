/** The Ops page: every op in a table, the selected one in a pane beside it. */
import { useMemo } from "preact/hooks";
import type { OpsPage as OpsData } from "../../api/types";
import { CoverageLine } from "../../components/CoverageLine";
import { PageHead } from "../../components/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { useView } from "../../state/store";
import { opColumns } from "../opColumns";
import { holdsOp } from "../modules/tree";
import { ModuleChoice } from "./ModuleChoice";
import { OpPane } from "./OpPane";

export function OpsPage({ data }: { data: OpsData }) {
  const { state, set } = useView();
  const columns = useMemo(() => opColumns(data.has_gpu), [data.has_gpu]);
  const { opModule } = state;
  const rows = useMemo(() => (opModule === null ? data.rows : data.rows.filter((row) => holdsOp(opModule, row))), [data.rows, opModule]);
  return (
    <>
      <PageHead title="Ops" headline={data.headline} range={data.range} />
      {opModule !== null && <ModuleChoice of={opModule} shown={rows.length} known={data.rows.length} />}
      <div class={state.op === null ? "" : "split"}>
        <DataTable
          name={`ops ${data.ref.run}`}
          testId="ops-table"
          columns={columns}
          rows={rows}
          rowId={(row) => row.id}
          selected={state.op}
          onSelect={(row) => set({ op: row.id === state.op ? null : row.id })}
          totalRows={opModule === null ? data.total_rows : rows.length}
        />
        {state.op !== null && <OpPane id={state.op} hasGpu={data.has_gpu} />}
      </div>
      <CoverageLine coverage={data.coverage} />
    </>
  );
}
