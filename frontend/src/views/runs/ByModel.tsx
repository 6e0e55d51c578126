/** A row for each model: before and after mixed precision, and what to do next. */
import type { ByModelPage, ModelRow, ModelSide } from "../../api/types";
import { useProgress } from "../../api/useProgress";
import { Card } from "../../components/Card";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { ProgressLine } from "../../components/ProgressLine";
import { ResourceView } from "../../features/ResourceView";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Text, Value } from "../../components/Value";
import { DEFINITIONS, LABELS } from "../../format/definitions";
import { noiseText, Speedup, StepTime } from "./columns";
import { Failed } from "./Failed";
import { goTo } from "../../state/navigate";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { NO_PROFILE } from "../../state/profile";
import { baseParam, candidateParam } from "../compare/params";
import { byModelTable } from "./params";

export function ByModel() {
  const resource = useProgress("by_model", {});
  return <ResourceView resource={resource}>{(data) => <Loaded data={data} />}</ResourceView>;
}

type Side = "before" | "after";
type Figure = "gpu_utilization" | "tensor_core_utilization" | "step_ns";

/** A figure of one side; a run that was not recorded is distinguished from an unknown figure. */
function column(
  side: Side,
  figure: Figure,
  header: string,
  definition: string,
  unit: "percent" | "ns",
  width: string,
): Column<ModelRow> {
  return {
    id: `${figure}-${side}`,
    header,
    definition: `${definition} ${side === "before" ? "Before" : "After"} mixed precision.`,
    value: (row) => row[side]?.[figure] ?? null,
    unit,
    cell: (row) => {
      const shown = row[side];
      if (!shown) return <span class="missing">–</span>;
      return figure === "step_ns" ? <StepTime of={shown} /> : <Value value={shown[figure]} unit={unit} />;
    },
    width,
  };
}

function Precision({ side }: { side: ModelSide | null }) {
  if (side === null) return <span class="missing">not recorded</span>;
  return (
    <span title={side.ref.run}>
      <Text value={side.precision} />
    </span>
  );
}

const COLUMNS: Column<ModelRow>[] = [
  { id: "model", header: "Model", definition: DEFINITIONS.runModel, value: (row) => row.model, width: "160px" },
  {
    id: "batch",
    header: "Batch",
    definition: "Samples in a batch.",
    value: (row) => row.batch_size,
    unit: "count",
    width: "76px",
  },
  {
    id: "before",
    header: "Before",
    definition: "What the base computes in.",
    value: (row) => row.before?.precision ?? null,
    missing: "not recorded",
    filter: "choice",
    cell: (row) => <Precision side={row.before} />,
    width: "84px",
  },
  {
    id: "after",
    header: "After",
    definition: "The fastest recorded run with mixed precision.",
    value: (row) => row.after?.precision ?? null,
    missing: "not recorded",
    filter: "choice",
    cell: (row) => <Precision side={row.after} />,
    width: "92px",
  },
  column("before", "gpu_utilization", LABELS.gpuUtilization, DEFINITIONS.gpuUtilization, "percent", "92px"),
  column("after", "gpu_utilization", "GPU busy after", DEFINITIONS.gpuUtilization, "percent", "112px"),
  column("before", "tensor_core_utilization", LABELS.tcUtilization, DEFINITIONS.tcUtilization, "percent", "176px"),
  column("after", "tensor_core_utilization", "Utilization after", DEFINITIONS.tcUtilization, "percent", "122px"),
  column("before", "step_ns", LABELS.stepTime, DEFINITIONS.stepTime, "ns", "92px"),
  column("after", "step_ns", "Step time after", DEFINITIONS.stepTime, "ns", "112px"),
  {
    id: "speedup",
    header: "Speedup",
    definition: DEFINITIONS.runSpeedup,
    value: (row) => row.speedup,
    unit: "ratio",
    cell: (row) => <Speedup row={row} />,
    width: "88px",
  },
  {
    id: "noise",
    header: "95 %",
    definition: DEFINITIONS.runNoise,
    value: (row) => (row.speedup === null ? null : noiseText(row.low, row.high)),
    missing: "–",
    width: "130px",
  },
];

const rowId = (row: ModelRow): string => `${row.before?.ref.run ?? ""} ${row.after?.ref.run ?? ""}`;

function Loaded({ data }: { data: ByModelPage }) {
  const open = (row: ModelRow): void => {
    const side = { ...NO_PROFILE, range: null };
    if (row.before && row.after)
      goTo(
        "compare",
        baseParam.to({ ...side, run: row.before.ref.run }),
        candidateParam.to({ ...side, run: row.after.ref.run }),
      );
    else
      goTo(
        "overview",
        profileParam.to({ ...NO_PROFILE, run: (row.before ?? row.after)!.ref.run }),
        rangeParam.to(null),
      );
  };
  return (
    <>
      <PageHead title="Runs" headline={data.headline}>
        <ProgressLine done={data.done} total={data.total} what="runs" />
      </PageHead>
      <Failed failed={data.failed} />
      {data.rows.length === 0 && data.done >= data.total ? (
        <EmptyMessage>
          This table takes runs of a named model in FP32 or TF32, and with automatic mixed precision. Record them with
          tb_dlprof_plugin.profile(..., model=model), each into a directory of its own, and press Refresh.
        </EmptyMessage>
      ) : (
        <>
          <Card title="Before and after mixed precision">
            <DataTable
              name="runs by model"
              testId="by-model-table"
              options={byModelTable}
              columns={COLUMNS}
              rows={data.rows}
              rowId={rowId}
              onSelect={open}
              totalRows={data.total_rows}
            />
          </Card>
          <Card title="What to do" testId="by-model-next">
            <dl class="next-steps">
              {data.rows.map((row) => (
                <div key={rowId(row)}>
                  <dt>
                    {row.model}
                    {row.batch_size !== null && <span class="muted">, batch {row.batch_size}</span>}
                  </dt>
                  <dd>
                    {row.recommendation}
                    {row.changes.length > 0 && (
                      <span class="muted"> Before and after also differ in: {row.changes.join("; ")}.</span>
                    )}
                  </dd>
                </div>
              ))}
            </dl>
          </Card>
        </>
      )}
    </>
  );
}
