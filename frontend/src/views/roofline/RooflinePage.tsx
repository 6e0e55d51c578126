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
import { formatByteRate, formatExact } from "../../format/number";
import { COLUMNS } from "./columns";
import { RooflineChart } from "./RooflineChart";
import { goTo } from "../../state/navigate";
import { opParam } from "../../state/sharedParams";
import { rooflineTable } from "./params";

export function RooflinePage({ data }: { data: RooflineData }) {
  const filter = usePageFilter();
  const ops = useOwn(data.ops, filter, (row, own) => own.ops.has(row.id));
  const open = (op: string) => goTo("ops", opParam.to(op));
  const head = <PageHead title="Roofline" headline={data.headline} range={data.range} />;
  if (!data.has_gpu) {
    return (
      <>
        {head}
        <EmptyMessage>No GPU in this recording, so there is no rate to compare with a roof.</EmptyMessage>
      </>
    );
  }
  return (
    <>
      {head}
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
                area: GPU time; solid: Tensor Cores, dashed: CUDA cores; lighter: no op ran in it; click an op to open
                it
              </span>
            }
          >
            <RooflineChart data={data} only={filter.related && filter.ops} onOp={open} />
          </Card>
        </div>
      ) : (
        <EmptyMessage>
          No matrix product, convolution or attention launched a kernel in the selected iterations.
        </EmptyMessage>
      )}
      {data.ops.length > 0 && <Figures data={data} />}
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

type Fact = [preact.JSX.Element, preact.JSX.Element];

/** What the ops need and reach, and what the GPU can; what is unknown of either is a sentence. */
function Figures({ data }: { data: RooflineData }) {
  const bandwidth = data.bytes_per_second;
  const known: (Fact | false)[] = [
    data.flops_per_iteration !== null && [
      <Term of="flops">Known FLOPs per step</Term>,
      <Value value={data.flops_per_iteration} unit="flops" />,
    ],
    [<Term of="matrixTime">GPU time</Term>, <Sum value={data.matrix_ns} unit="ns" />],
    data.flops_per_second !== null && [
      <Term of="flopRate">Rate</Term>,
      <Value value={data.flops_per_second} unit="flops_per_second" />,
    ],
    data.percent_of_ceiling !== null && [
      <Term of="roofPercent">Of the roof</Term>,
      <Value value={data.percent_of_ceiling} unit="percent" />,
    ],
    (data.unknown_percent ?? 0) > 0 && [
      <Term of="unknownFlops">Time of unknown FLOPs</Term>,
      <Value value={data.unknown_percent} unit="percent" />,
    ],
  ];
  return (
    <div class="grid grid-halves">
      <Card title="Matrix products, convolutions and attention" testId="roofline-summary">
        <Facts rows={known.filter((fact): fact is Fact => fact !== false)} />
      </Card>
      <Card title="What the GPU can reach" testId="roofline-gpu">
        {bandwidth === null ? (
          <p class="muted">
            The peak rates of {data.gpu || "this GPU"} are unknown, so its roofs are not drawn and no share of them is
            known.
          </p>
        ) : (
          <Facts
            rows={[
              [<Term of="gpuName">GPU</Term>, <Text value={data.gpu} />],
              ...data.roofs.map(
                (roof): Fact => [
                  <Term of="gpuRates">{roof.label}</Term>,
                  <Value value={roof.flops_per_second} unit="flops_per_second" />,
                ],
              ),
              [
                <Term of="gpuBandwidth">Memory</Term>,
                <span class="num" title={`${formatExact(bandwidth)} bytes per second`}>
                  {formatByteRate(bandwidth)}
                </span>,
              ],
              [<Term of="rateSource">Source</Term>, <Text value={data.source} />],
            ]}
          />
        )}
      </Card>
    </div>
  );
}
