/** The ten ops that take the most time. */
import { useMemo } from "preact/hooks";
import type { OpRow } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { useView } from "../../state/store";
import { opColumns } from "../opColumns";

const COLUMNS = ["name", "gpu", "share", "cpu", "calls", "type", "direction", "eligible", "using"];

export function TopOps({ rows, hasGpu }: { rows: OpRow[]; hasGpu: boolean }) {
  const { set } = useView();
  const columns = useMemo(() => {
    const skipped = hasGpu ? ["cpu"] : [];
    return opColumns(hasGpu).filter((column) => COLUMNS.includes(column.id) && !skipped.includes(column.id));
  }, [hasGpu]);
  return (
    <Card
      title={hasGpu ? "Top GPU ops" : "Top CPU ops"}
      testId="overview-top-ops"
      actions={
        <button type="button" class="link" onClick={() => set({ page: "ops" })}>
          all ops
        </button>
      }
    >
      <DataTable name="top ops" plain columns={columns} rows={rows} rowId={(row) => row.id} onSelect={(row) => set({ page: "ops", op: row.id })} />
    </Card>
  );
}
