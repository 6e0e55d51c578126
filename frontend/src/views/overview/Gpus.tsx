/** Several GPUs of one process, each with what it is and how much it worked: the figures above are their means. */
import * as columns from "../../api/columns";
import type { GpuUse } from "../../api/types";
import { Card } from "../../components/Card";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";

const COLUMNS = tableColumns(columns.GpuUse);

export function Gpus({ gpus, run }: { gpus: GpuUse[]; run: string }) {
  return (
    <div class="grid">
      <Card title="GPUs of this process" testId="overview-gpus">
        <DataTable name={`gpus ${run}`} columns={COLUMNS} rows={gpus} rowId={(gpu) => String(gpu.id)} />
      </Card>
    </div>
  );
}
