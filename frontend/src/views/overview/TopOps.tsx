/** The ten ops that take the most time. */
import { useMemo } from "preact/hooks";
import { OpRow } from "../../api/columns";
import type { OpRow as Row, SelectedRange } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { useIterations } from "../../components/sums";
import { unitText } from "../../features/UnitNote";
import { tableColumns } from "../../components/table/declared";
import { goTo } from "../../state/navigate";
import { opParam } from "../../state/sharedParams";

/** The columns shown here, in DLProf's order and narrower than on the Ops page. */
const WIDTHS: Record<string, string> = {
  name: "160px",
  role: "82px",
  gpu_ns: "82px",
  gpu_percent: "66px",
  cpu_total_ns: "92px",
  calls: "54px",
  op_type: "96px",
  tc_eligible: "92px",
  using_tc: "78px",
};

export function TopOps({ rows, hasGpu, range }: { rows: Row[]; hasGpu: boolean; range: SelectedRange }) {
  const columns = useMemo(() => {
    const known = new Map(tableColumns(OpRow, {}, hasGpu).map((column) => [column.id, column]));
    return Object.entries(WIDTHS).flatMap(([id, width]) => {
      const column = hasGpu && id === "cpu_total_ns" ? undefined : known.get(id);
      return column ? [{ ...column, width }] : [];
    });
  }, [hasGpu]);
  return (
    <Card
      title={`Top ${hasGpu ? "GPU" : "CPU"} ops, ${unitText(range, useIterations())}`}
      testId="overview-top-ops"
      actions={
        <button type="button" class="link" onClick={() => goTo("ops")}>
          all ops
        </button>
      }
    >
      <DataTable
        name="top ops"
        plain
        columns={columns}
        rows={rows}
        rowId={(row) => row.id}
        onSelect={(row) => goTo("ops", opParam.to(row.id))}
      />
    </Card>
  );
}
