/** The ten ops that take the most time. */
import { useMemo } from "preact/hooks";
import type { OpRow } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { useView } from "../../state/store";
import { opColumns } from "../opColumns";

/** The columns shown here, narrower than on the Ops page. */
const WIDTHS: Record<string, string> = {
  name: "250px",
  gpu: "86px",
  share: "72px",
  cpu: "90px",
  calls: "60px",
  type: "140px",
  direction: "84px",
  eligible: "96px",
  using: "92px",
};

export function TopOps({ rows, hasGpu }: { rows: OpRow[]; hasGpu: boolean }) {
  const { set } = useView();
  const columns = useMemo(() => {
    const wanted = opColumns(hasGpu).filter((column) => column.id in WIDTHS && !(hasGpu && column.id === "cpu"));
    return wanted.map((column) => ({ ...column, width: WIDTHS[column.id]! }));
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
