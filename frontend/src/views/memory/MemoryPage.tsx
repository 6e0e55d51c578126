/** The Memory page: what was allocated over time, and by whom at the moment when it was most. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { MemoryDevice, MemoryPage as MemoryData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn, type PageFilter } from "../filter/usePageFilter";
import { More } from "../../components/More";
import { NoteList } from "../../components/NoteList";
import { Card } from "../../components/Card";
import { CodeBlock } from "../../components/CodeBlock";
import { EmptyMessage } from "../../components/Message";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { Defined, Term } from "../../components/Term";
import { ALLOCATIONS, CATEGORIES, groupName, iterationColumns, MODULES, OP_TYPES } from "./columns";
import { MemoryCurve } from "./MemoryCurve";
import { AllocatorFigures, MemoryFigures } from "./MemoryFigures";
import { MemoryIcicle } from "./MemoryIcicle";
import { OutOfMemory } from "./OutOfMemory";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { opParam, rangeParam } from "../../state/sharedParams";
import { allocationsTable, deviceParam } from "./params";

const moreOpen = signal(false);

export function MemoryPage({ data }: { data: MemoryData }) {
  const { curve, figures, peak } = data;
  const iterations = useMemo(
    () => iterationColumns(data.categories, data.device !== "cpu"),
    [data.categories, data.device],
  );
  const filter = usePageFilter();
  const rows = useOwn(data.rows, filter, (row, own) => row.op_id !== null && own.ops.has(row.op_id));
  if (!curve || !figures || !peak) return <NotRecorded data={data} filter={filter} />;
  const run = data.ref.run;
  return (
    <>
      <PageHead title="Memory" headline={data.headline} range={data.range}>
        {data.devices.length > 1 && (
          <DevicePicker
            devices={data.devices}
            device={data.device}
            onChange={(device) => assign(deviceParam.to(device))}
          />
        )}
      </PageHead>
      <OutOfMemory />
      <MemoryFigures figures={figures} onGpu={data.device !== "cpu"} />
      <div class={data.not_attributed ? "grid" : "grid grid-memory"}>
        <Card
          title={
            <Term of={data.not_attributed ? "memoryCurvePlain" : "memoryCurve"}>
              {data.not_attributed ? "Allocated memory" : "Allocated memory by category"}
            </Term>
          }
          testId="memory-curve"
          actions={
            <span class="muted small">
              <Defined
                text={`${curve.reserved.length > 0 ? "Dashed: reserved. " : ""}Dotted: iterations. Ctrl and the wheel zoom.`}
              >
                Lines
              </Defined>
            </span>
          }
        >
          <p class="memory-peak" data-testid="memory-peak-words">
            <HeadlineText parts={data.peak_parts} />
          </p>
          <MemoryCurve
            curve={curve}
            categories={data.categories}
            iterations={data.iterations}
            peak={peak}
            limit={figures.relative ? null : figures.device_memory_bytes}
          />
        </Card>
        <Card
          title={data.not_attributed ? "The peak" : <Term of="memoryAtPeak">Categories at the peak</Term>}
          testId="memory-categories"
        >
          {data.not_attributed ? (
            <p class="muted" data-testid="memory-not-attributed">
              {data.not_attributed}
            </p>
          ) : (
            <DataTable
              name={`memory categories ${run}`}
              plain
              columns={CATEGORIES}
              rows={data.categories}
              rowId={(row) => row.key}
            />
          )}
        </Card>
      </div>
      {data.parts.length > 0 && (
        <div class="grid">
          <MemoryIcicle parts={data.parts} categories={data.categories} />
        </div>
      )}
      {!data.not_attributed && (
        <div class="grid grid-halves">
          <Card title="Peak by module" testId="memory-modules">
            <DataTable
              name={`memory by module ${run}`}
              columns={MODULES}
              rows={data.modules}
              rowId={(row) => `${row.kind} ${row.name}`}
            />
          </Card>
          <Card title="Peak by op type" testId="memory-op-types">
            <DataTable
              name={`memory by op type ${run}`}
              columns={OP_TYPES}
              rows={data.op_types}
              rowId={(row) => `${groupName(row)} ${row.direction}`}
            />
          </Card>
        </div>
      )}
      <FilterChip
        filter={filter}
        shown={rows.length}
        known={data.rows.length}
        of="allocations alive at the peak"
        none="None of what was alive at the peak was allocated by it."
      />
      <div class="grid">
        {!data.not_attributed && (
          <Card title="Largest allocations alive at the peak" testId="memory-allocations">
            <DataTable
              name={`memory allocations ${run}`}
              options={allocationsTable}
              columns={ALLOCATIONS}
              rows={rows}
              rowId={(row) => String(row.id)}
              onSelect={(row) => goTo("ops", opParam.to(row.op_id))}
              selectable={(row) => row.op_id !== null}
              totalRows={rows === data.rows ? (data.total_rows ?? undefined) : rows.length}
            />
          </Card>
        )}
        <Card title="Iterations" testId="memory-iterations">
          <DataTable
            name={`memory by iteration ${run}`}
            plain
            columns={iterations}
            rows={data.iterations}
            rowId={(row) => String(row.index)}
            onSelect={(row) => assign(rangeParam.to({ first: row.index, last: row.index }))}
          />
        </Card>
      </div>
      {data.limits && (
        <More title="The allocator: fragmentation and limits" testId="memory-more" open={moreOpen}>
          {() => <AllocatorFigures figures={figures} limits={data.limits!} />}
        </More>
      )}
      <NoteList
        testId="memory-notes"
        notes={[...(data.limits?.unknown ? [`The limits are unknown: ${data.limits.unknown}`] : []), ...data.notes]}
      />
    </>
  );
}

function NotRecorded({ data, filter }: { data: MemoryData; filter: PageFilter }) {
  return (
    <>
      <PageHead title="Memory" headline={data.headline} />
      <OutOfMemory />
      <FilterChip filter={filter} shown={0} known={0} of="allocations" none="Nothing is known of its memory." />
      <EmptyMessage>
        <p>
          The profiler writes memory events only when it is asked to; each allocation then costs the CPU a little more
          time.
        </p>
        {data.how_to_record && <CodeBlock code={data.how_to_record} label="How to record memory" />}
      </EmptyMessage>
    </>
  );
}

interface DevicePickerProps {
  devices: MemoryDevice[];
  device: string | null;
  onChange: (device: string) => void;
}

function DevicePicker({ devices, device, onChange }: DevicePickerProps) {
  return (
    <label class="picker memory-device">
      <span>Device</span>
      <select
        value={device ?? ""}
        data-testid="memory-device-picker"
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {devices.map((item) => (
          <option key={item.key} value={item.key}>
            {item.label}
          </option>
        ))}
      </select>
    </label>
  );
}
