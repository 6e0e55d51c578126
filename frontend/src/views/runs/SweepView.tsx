/** The sweep: what is drawn over which fact, the lines, their values, and the runs in no line. */
import type { SweepOption, SweepPage } from "../../api/types";
import { useProgress } from "../../api/useProgress";
import { Card } from "../../components/Card";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { ProgressLine } from "../../components/ProgressLine";
import { ResourceView } from "../../features/ResourceView";
import { Failed } from "./Failed";
import { SweepChart } from "./SweepChart";
import { SweepPoints } from "./SweepPoints";
import { DEFAULT_SHARE, sweepQuery } from "./sweep";
import { assign } from "../../state/param";
import { measureParam, overParam, shareParam } from "./params";

export function SweepView() {
  const resource = useProgress(
    "sweep",
    sweepQuery({ over: overParam.value, measure: measureParam.value, share: shareParam.value }),
  );
  return <ResourceView resource={resource}>{(data) => <Loaded data={data} />}</ResourceView>;
}

function Loaded({ data }: { data: SweepPage }) {
  return (
    <>
      <PageHead title="Runs" headline={data.headline}>
        <ProgressLine done={data.done} total={data.total} what="runs" />
      </PageHead>
      <Failed failed={data.failed} />
      <div class="runs-bar">
        <Choice
          label="Measure"
          name="sweep-measure"
          value={data.measure}
          options={data.measures}
          onChange={(measure) =>
            assign(
              measureParam.to(measure),
              shareParam.to(measure === "share" ? (shareParam.value ?? DEFAULT_SHARE) : shareParam.value),
            )
          }
        />
        {data.measure === "share" && <ShareChoice data={data} />}
        <Choice
          label="over"
          name="sweep-over"
          value={data.over}
          options={data.overs}
          onChange={(over) => assign(overParam.to(over))}
        />
      </div>
      {data.notes.map((note) => (
        <p key={note} class="warnings">
          {note}
        </p>
      ))}
      {data.curves.length > 0 ? (
        <>
          <Card title={`${data.measure_label} over ${data.over_label}`} testId="sweep-chart">
            <SweepChart data={data} />
            {data.common.length > 0 && <p class="muted small">All of them: {data.common.join(", ")}.</p>}
          </Card>
          <Card title="Values">
            <SweepPoints data={data} />
          </Card>
        </>
      ) : (
        data.done >= data.total && (
          <EmptyMessage>
            A line takes two runs that differ in one recorded fact alone: the batch size, the model, the DataLoader's
            workers, the GPU or another.{" "}
            {data.overs.length > 1 ? "Choose another fact above, or record such a run" : "Record such a run"} into a
            directory of its own and press Refresh.
          </EmptyMessage>
        )
      )}
      <LeftOut data={data} />
    </>
  );
}

interface ChoiceProps {
  label: string;
  name: string;
  value: string;
  options: SweepOption[];
  onChange: (key: string) => void;
}

function Choice({ label, name, value, options, onChange }: ChoiceProps) {
  return (
    <label class="picker">
      {label}
      <select value={value} data-testid={name} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option.key} value={option.key}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Kernel groups and types of op, of which a share can be drawn. */
function ShareChoice({ data }: { data: SweepPage }) {
  return (
    <label class="picker picker-wide">
      of
      <select
        value={data.op ? `op:${data.op}` : `group:${data.kernel_group}`}
        data-testid="sweep-share"
        onChange={(event) => assign(shareParam.to(event.currentTarget.value))}
      >
        <optgroup label="Kernel groups">
          {!data.op && data.kernel_groups.every((option) => option.key !== data.kernel_group) && (
            <option value={`group:${data.kernel_group}`}>{data.kernel_group}</option>
          )}
          {data.kernel_groups.map((option) => (
            <option key={option.key} value={`group:${option.key}`}>
              {option.label}
            </option>
          ))}
        </optgroup>
        <optgroup label="Ops">
          {data.op && data.ops.every((option) => option.key !== data.op) && (
            <option value={`op:${data.op}`}>{data.op}</option>
          )}
          {data.ops.map((option) => (
            <option key={option.key} value={`op:${option.key}`}>
              {option.label}
            </option>
          ))}
        </optgroup>
      </select>
    </label>
  );
}

/** The runs that are in no line, by the reason. */
function LeftOut({ data }: { data: SweepPage }) {
  if (data.left_out.length === 0 || data.done < data.total) return null;
  const reasons = new Map<string, string[]>();
  for (const left of data.left_out) reasons.set(left.why, [...(reasons.get(left.why) ?? []), left.run]);
  return (
    <details
      class="left-out"
      data-testid="sweep-left-out"
      open={data.curves.length === 0 && data.left_out.length <= 20}
    >
      <summary>{data.left_out.length === 1 ? "1 run is" : `${data.left_out.length} runs are`} in no line</summary>
      {[...reasons].map(([why, runs]) => (
        <p key={why}>
          <strong>{runs.length === 1 ? why : `${runs.length} runs: ${why}`}</strong>
          <br />
          <span class="muted">{runs.join(", ")}</span>
        </p>
      ))}
    </details>
  );
}
