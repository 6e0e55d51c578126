/** Several GPUs of one process, each with what it is and how much it worked: the figures above are their means. */
import type { GpuUse } from "../../api/types";
import { Card } from "../../components/Card";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { DEFINITIONS } from "../../format/definitions";

const COLUMNS: Column<GpuUse>[] = [
  { id: "id", header: "GPU", definition: DEFINITIONS.gpuNumber, value: (gpu) => gpu.id, unit: "count", width: "72px" },
  { id: "name", header: "Name", definition: DEFINITIONS.gpuName, value: (gpu) => gpu.name, width: "220px" },
  {
    id: "use",
    header: "Utilization",
    definition: DEFINITIONS.gpuUse,
    value: (gpu) => gpu.utilization_percent,
    unit: "percent",
    width: "110px",
  },
  {
    id: "busy",
    header: "Busy",
    definition: DEFINITIONS.gpuBusy,
    value: (gpu) => gpu.busy_ns,
    unit: "ns",
    width: "100px",
  },
  {
    id: "tc",
    header: "On Tensor Cores",
    definition: DEFINITIONS.gpuTensorCores,
    value: (gpu) => gpu.tensor_core_percent,
    unit: "percent",
    width: "140px",
  },
  {
    id: "capability",
    header: "Compute capability",
    definition: DEFINITIONS.gpuCapability,
    value: (gpu) => gpu.compute_capability,
    width: "160px",
  },
  {
    id: "sms",
    header: "SMs",
    definition: DEFINITIONS.gpuSms,
    value: (gpu) => gpu.sm_count,
    unit: "count",
    width: "72px",
  },
  {
    id: "memory",
    header: "Memory",
    definition: DEFINITIONS.gpuMemory,
    value: (gpu) => gpu.memory_bytes,
    unit: "bytes",
    width: "110px",
  },
];

export function Gpus({ gpus, run }: { gpus: GpuUse[]; run: string }) {
  return (
    <div class="grid">
      <Card title="GPUs of this process" testId="overview-gpus">
        <DataTable name={`gpus ${run}`} columns={COLUMNS} rows={gpus} rowId={(gpu) => String(gpu.id)} />
      </Card>
    </div>
  );
}
