/** The Roofline page: how near each matrix product, convolution and attention comes to what the GPU can reach. */
import type { RooflinePage as RooflineData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Sum, Text, Value } from "../../components/Value";
import { formatExact, threeDigits } from "../../format/number";
import { COLUMNS } from "./columns";
import { RooflineChart } from "./RooflineChart";
import { goTo } from "../../state/navigate";
import { opParam } from "../../state/sharedParams";
import { rooflineTable } from "./params";

export function RooflinePage({ data }: { data: RooflineData }) {
  const filter = usePageFilter();
  const ops = useOwn(data.ops, filter, (row, own) => own.ops.has(row.id));
  const open = (op: string) => goTo("ops", opParam.to(op));
  return (
    <>
      <PageHead title="Roofline" headline={data.headline} range={data.range} />
      <FilterChip
        filter={filter}
        shown={ops.length}
        known={data.ops.length}
        of="ops with FLOPs"
        none="None of it is a matrix product, convolution or attention."
      />
      {data.ops.length > 0 ? (
        <div class="grid">
          <Card
            title={<Term of="roof">Rate of each op under the GPU's roofs</Term>}
            testId="roofline-chart"
            actions={
              <span class="muted small">
                area: GPU time; solid: Tensor Cores, dashed: CUDA cores; click an op to open it
              </span>
            }
          >
            <RooflineChart data={data} only={filter.related && filter.ops} onOp={open} />
          </Card>
        </div>
      ) : (
        <EmptyMessage>
          {data.has_gpu
            ? "No matrix product, convolution or attention launched a kernel in the selected iterations."
            : "This recording holds no GPU work, so there is no rate to compare with a roof."}
        </EmptyMessage>
      )}
      <div class="grid grid-halves">
        <Card title="Matrix products, convolutions and attention" testId="roofline-summary">
          <Facts
            rows={[
              [<Term of="flops">FLOPs per iteration</Term>, <Value value={data.flops_per_iteration} unit="flops" />],
              [<Term of="matrixTime">GPU time</Term>, <Sum value={data.matrix_ns} unit="ns" />],
              [<Term of="flopRate">Rate</Term>, <Value value={data.flops_per_second} unit="flops_per_second" />],
              [<Term of="roofPercent">Of the roof</Term>, <Value value={data.percent_of_ceiling} unit="percent" />],
              [
                <Term of="unknownFlops">Time of unknown FLOPs</Term>,
                <Value value={data.unknown_percent} unit="percent" />,
              ],
            ]}
          />
        </Card>
        {data.has_gpu && (
          <Card title="What the GPU can reach" testId="roofline-gpu">
            <Facts
              rows={[
                [<Term of="gpuName">GPU</Term>, <Text value={data.gpu} />],
                ...data.roofs.map((roof): [preact.JSX.Element, preact.JSX.Element] => [
                  <Term of="gpuRates">{roof.label}</Term>,
                  <Value value={roof.flops_per_second} unit="flops_per_second" />,
                ]),
                [
                  <Term of="gpuBandwidth">Memory</Term>,
                  data.bytes_per_second === null ? (
                    <Text value={null} />
                  ) : (
                    <span class="num" title={`${formatExact(data.bytes_per_second)} bytes per second`}>
                      {threeDigits(data.bytes_per_second / 1e9)} GB/s
                    </span>
                  ),
                ],
                [<Term of="rateSource">Source</Term>, <Text value={data.source} />],
              ]}
            />
          </Card>
        )}
      </div>
      {data.ops.length > 0 && (
        <DataTable
          name={`roofline ${data.ref.run}`}
          testId="roofline-table"
          fill
          options={rooflineTable}
          columns={COLUMNS}
          rows={ops}
          rowId={(row) => row.id}
          onSelect={(row) => open(row.id)}
          totalRows={ops === data.ops ? data.total_rows : ops.length}
        />
      )}
    </>
  );
}
