/** The failed allocation in the run's directory, where the hook left one: why, who held what, what would have fitted. */
import { profileQuery } from "../../api/queries";
import type { OomPage } from "../../api/types";
import { useResource } from "../../api/useResource";
import * as columns from "../../api/columns";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { tableColumns } from "../../components/table/declared";
import { profileParam } from "../../state/sharedParams";

const CHANGES = tableColumns(columns.OomChange);
const HOLDERS = tableColumns(columns.OomHolder);

export function OutOfMemory() {
  const { data } = useResource("out_of_memory", profileQuery(profileParam.value, null), String(profileParam.value.run));
  return data?.failure ? <Failure failure={data.failure} run={data.ref.run} /> : null;
}

function Failure({ failure, run }: { failure: OomPage; run: string }) {
  return (
    <Card title="Out of memory" testId="memory-failure">
      <p>{failure.headline}</p>
      {failure.changes.length > 0 ? (
        <DataTable
          name={`what would have fitted ${run}`}
          plain
          columns={CHANGES}
          rows={failure.changes}
          rowId={(row) => row.change}
        />
      ) : (
        <p class="muted" data-testid="memory-failure-why">
          What would have fitted cannot be said: {failure.cannot_say}
        </p>
      )}
      <DataTable
        name={`who held memory ${run}`}
        columns={HOLDERS}
        rows={failure.rows}
        rowId={(row) => `${row.kind} ${row.module}`}
      />
      <p class="muted small">Unexplained: {failure.unexplained_percent.toFixed(1)} % of the bytes in use.</p>
    </Card>
  );
}
