/** The ten ops that take the most time. */
import { useMemo } from "preact/hooks";
import type { OpRow, SelectedRange } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { useIterations } from "../../components/sums";
import { unitText } from "../../features/UnitNote";
import { opColumns } from "../opColumns";
import { goTo } from "../../state/navigate";
import { opParam } from "../../state/sharedParams";

/** The columns shown here, in DLProf's order and narrower than on the Ops page. */
const WIDTHS: Record<string, string> = {
  name: "160px",
  pass: "82px",
  gpu: "82px",
  share: "66px",
  cpu: "92px",
  calls: "54px",
  type: "96px",
  eligible: "92px",
  using: "78px",
};

export function TopOps({ rows, hasGpu, range }: { rows: OpRow[]; hasGpu: boolean; range: SelectedRange }) {
  const columns = useMemo(() => {
    const known = new Map(opColumns(hasGpu).map((column) => [column.id, column]));
    return Object.entries(WIDTHS).flatMap(([id, width]) => {
      const column = hasGpu && id === "cpu" ? undefined : known.get(id);
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
