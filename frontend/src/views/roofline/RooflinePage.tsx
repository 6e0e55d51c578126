/** The Roofline page: how near each matrix product, convolution and attention comes to what the GPU can reach. */
import type { RooflineOp, RooflinePage as RooflineData } from "../../api/types";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { EmptyMessage } from "../../components/Message";
import { OpName } from "../../components/OpName";
import { PageHead } from "../../components/PageHead";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Text, Value } from "../../components/Value";
import { DEFINITIONS } from "../../format/definitions";
import { useView } from "../../state/store";
import { RooflineChart } from "./RooflineChart";

const COLUMNS: Column<RooflineOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, value: (row) => row.name, cell: (row) => <OpName name={row.name} />, width: "270px" },
  { id: "direction", header: "Direction", definition: DEFINITIONS.direction, value: (row) => row.direction || null, missing: "–", filter: "choice", width: "96px" },
  { id: "gpu", header: "GPU time", definition: DEFINITIONS.matrixTime, value: (row) => row.gpu_ns, unit: "ns", width: "96px" },
  { id: "percent", header: "% of roof", definition: DEFINITIONS.roofPercent, value: (row) => row.percent_of_ceiling, unit: "percent", width: "96px" },
  { id: "rate", header: "Rate", definition: DEFINITIONS.flopRate, value: (row) => row.flops_per_second, unit: "flops_per_second", width: "116px" },
  { id: "roof", header: "Roof", definition: DEFINITIONS.roof, value: (row) => row.ceiling_flops_per_second, unit: "flops_per_second", width: "116px" },
  {
    id: "precision",
    header: "Ran in",
    definition: DEFINITIONS.ranIn,
    value: (row) => (row.precision ? row.precision + (row.tensor_cores === "no" ? ", no TC" : "") : null),
    filter: "choice",
    width: "110px",
  },
  { id: "bound", header: "Bound by", definition: DEFINITIONS.bound, value: (row) => (row.bound === "unknown" ? null : row.bound), filter: "choice", width: "100px" },
  { id: "possible", header: "Could run in", definition: DEFINITIONS.couldRunIn, value: (row) => row.possible_precision || null, filter: "choice", width: "110px" },
  { id: "possiblepercent", header: "% of that roof", definition: DEFINITIONS.possiblePercent, value: (row) => row.percent_of_possible, unit: "percent", width: "116px" },
  { id: "flops", header: "FLOPs", definition: DEFINITIONS.flops, value: (row) => row.flops, unit: "flops", width: "110px" },
  { id: "bytes", header: "Bytes", definition: DEFINITIONS.leastBytes, value: (row) => row.bytes, unit: "bytes", width: "100px" },
  { id: "intensity", header: "FLOPs/byte", definition: DEFINITIONS.intensity, value: (row) => row.flops_per_byte, unit: "count", width: "100px" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, value: (row) => row.calls, unit: "count", width: "76px" },
  { id: "type", header: "Op type", definition: DEFINITIONS.opType, value: (row) => row.op_type, width: "170px" },
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, value: (row) => row.shapes || null, width: "220px" },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, value: (row) => row.dtypes || null, width: "130px" },
];

export function RooflinePage({ data }: { data: RooflineData }) {
  const { set } = useView();
  const open = (op: string) => set({ page: "ops", op });
  return (
    <>
      <PageHead title="Roofline" headline={data.headline} range={data.range} />
      {data.ops.length > 0 ? (
        <div class="grid">
          <Card
            title={<Term of="roof">Rate of each op under the GPU's roofs</Term>}
            testId="roofline-chart"
            actions={<span class="muted small">area: GPU time; solid: Tensor Cores, dashed: CUDA cores; click an op to open it</span>}
          >
            <RooflineChart data={data} onOp={open} />
          </Card>
        </div>
      ) : (
        <EmptyMessage>
          {data.has_gpu
            ? "No matrix product, convolution or attention launched a kernel in the selected iterations."
            : "This recording holds no GPU work, so there is no rate to hold against a roof."}
        </EmptyMessage>
      )}
      <div class="grid grid-halves">
        <Card title="Matrix products, convolutions and attention" testId="roofline-summary">
          <Facts
            rows={[
              [<Term of="flops">FLOPs per iteration</Term>, <Value value={data.flops_per_iteration} unit="flops" />],
              [<Term of="matrixTime">GPU time</Term>, <Value value={data.matrix_ns} unit="ns" />],
              [<Term of="flopRate">Rate</Term>, <Value value={data.flops_per_second} unit="flops_per_second" />],
              [<Term of="roofPercent">Of the roof</Term>, <Value value={data.percent_of_ceiling} unit="percent" />],
              [<Term of="unknownFlops">Time of unknown FLOPs</Term>, <Value value={data.unknown_percent} unit="percent" />],
            ]}
          />
        </Card>
        {data.has_gpu && (
          <Card title="What the GPU can reach" testId="roofline-gpu">
            <Facts
              rows={[
                ["GPU", <Text value={data.gpu} />],
                ...data.roofs.map((roof): [string, preact.JSX.Element] => [roof.label, <Value value={roof.flops_per_second} unit="flops_per_second" />]),
                ["Memory", data.bytes_per_second === null ? <Text value={null} /> : <span class="num">{(data.bytes_per_second / 1e9).toLocaleString("en-US")} GB/s</span>],
                ["Source", <Text value={data.source} />],
              ]}
            />
          </Card>
        )}
      </div>
      {data.ops.length > 0 && (
        <DataTable
          name={`roofline ${data.ref.run}`}
          testId="roofline-table"
          columns={COLUMNS}
          rows={data.ops}
          rowId={(row) => row.id}
          onSelect={(row) => open(row.id)}
          totalRows={data.total_rows}
        />
      )}
    </>
  );
}
