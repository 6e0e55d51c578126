/** The Tensor Cores page: how far the eligible ops use them, at which precision, and which do not and why. */
import { useMemo } from "preact/hooks";
import * as columns from "../../api/columns";
import type { TensorCoreOp, TensorCoresPage as TensorCoresData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter, useOwn } from "../filter/usePageFilter";
import { Card } from "../../components/Card";
import { Donut } from "../../features/chart/Donut";
import { Facts } from "../../components/Facts";
import { PageHead } from "../../features/PageHead";
import { UnitNote } from "../../features/UnitNote";
import type { Column } from "../../components/table/columns";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { useIterations } from "../../components/sums";
import { Sum, Value } from "../../components/Value";
import { formatNs } from "../../format/duration";
import { SavingBar } from "../advice/SavingBar";
import { RooflineCard } from "../roofline/RooflineCard";
import { CouldSave } from "./CouldSave";
import { Ineligible, Reasons } from "./Reasons";
import { goTo } from "../../state/navigate";
import { kernelParam, opParam } from "../../state/sharedParams";
import { tensorCoresTable } from "./params";

/** The reason of most time, then the others and what serves a product on Tensor Cores, with their times. */
function whyNot(row: TensorCoreOp, iterations: number): string | null {
  const time = (ns: number): string => formatNs(ns / iterations);
  const others = row.reasons.slice(1).map((reason) => `${reason.label} ${time(reason.time_ns)}`);
  if (row.layout_ns) others.push(`changing layouts ${time(row.layout_ns)}`);
  if (row.helpers_ns) others.push(`kernels around a product ${time(row.helpers_ns)}`);
  const also = others.join(", ");
  return row.reason && also ? `${row.reason} Also: ${also}.` : row.reason || also || null;
}

function mainReason(row: TensorCoreOp): string | null {
  return row.reasons[0]?.label ?? (row.layout_ns ? "changing layouts" : null);
}

/** Where all time has one reason, the headline has it. */
const opColumns = (iterations: number, severalReasons: boolean): Column<TensorCoreOp>[] =>
  tableColumns(columns.TensorCoreOp, {
    could_save_ns: {
      cell: (row) =>
        row.could_save === "nothing" ? (
          <span class="missing">–</span>
        ) : (
          <CouldSave estimate={row.saved_ns} atMost={row.at_most_ns} />
        ),
    },
    reasons: severalReasons ? { value: mainReason } : null,
    reason: { value: (row) => whyNot(row, iterations) },
  });

const KERNELS = tableColumns(columns.TensorCoreKernel);

export function TensorCoresPage({ data }: { data: TensorCoresData }) {
  const filter = usePageFilter();
  const iterations = useIterations();
  const opTable = useMemo(() => opColumns(iterations, data.by_reason.length > 1), [iterations, data]);
  const ops = useOwn(data.ops, filter, (row, own) => own.ops.has(row.id));
  const kernels = useOwn(data.kernels, filter, (row, own) => own.kernels.has(row.id));
  return (
    <>
      <PageHead title="Tensor Cores" headline={data.headline} range={data.range} />
      {data.by_reason.length > 0 && (
        <details class="tc-why" data-testid="tc-reasons">
          <summary>Reasons, by time</summary>
          <p class="muted small tc-note">
            Kernel time and its share of that of eligible ops, <UnitNote range={data.range} />.
          </p>
          <Reasons totals={data.by_reason} />
          {data.saving && (
            <>
              <h3>
                <Term of="saving">Estimated saving per iteration</Term>
              </h3>
              <SavingBar saving={data.saving} />
            </>
          )}
        </details>
      )}
      {data.measured.length > 0 && (
        <p class="small tc-note" data-testid="tc-measured">
          {data.measured.join(" ")}
        </p>
      )}
      {data.has_gpu && data.eligible_ns !== null && (
        <div class="grid grid-halves">
          <Card
            title={<Term of="tcEfficiency">Kernel time of eligible ops by precision</Term>}
            testId="tc-by-precision"
          >
            <Donut
              name="Eligible time by precision"
              slices={data.by_precision}
              context="by_precision"
              centre={data.utilization_percent}
              centreLabel="on Tensor Cores"
            />
          </Card>
          <Card title="Eligible time" testId="tc-summary">
            <Facts
              rows={[
                [
                  <Term of="tcUtilization" />,
                  <Value value={data.utilization_percent} missing={data.utilization_possible?.text} unit="percent" />,
                ],
                [<Term of="eligibleTime">Eligible ops</Term>, <Sum value={data.eligible_ns} unit="ns" />],
                [<Term of="usingTime">On Tensor Cores</Term>, <Sum value={data.using_ns} unit="ns" />],
                [<Term of="notUsingTime">Not on Tensor Cores</Term>, <Sum value={data.not_using_ns} unit="ns" />],
                [<Term of="unknownTime">Unknown</Term>, <Sum value={data.unknown_ns} unit="ns" />],
                [
                  <Term of="supportedPrecisions">This GPU's Tensor Cores take</Term>,
                  data.supported_precisions.join(", ") || <span class="missing">unknown</span>,
                ],
              ]}
            />
          </Card>
        </div>
      )}
      <FilterChip
        filter={filter}
        shown={ops.length}
        known={data.ops.length}
        of="eligible ops"
        none="None of it can use Tensor Cores."
      />
      {data.ops.length > 0 && (
        <DataTable
          name={`tensor cores ${data.ref.run}`}
          testId="tc-table"
          fill
          firstTask="tensor_cores"
          options={tensorCoresTable}
          columns={opTable}
          rows={ops}
          rowId={(row) => row.id}
          onSelect={(row) => goTo("ops", opParam.to(row.id))}
          totalRows={ops === data.ops ? data.total_rows : ops.length}
        />
      )}
      {data.ops.length > 0 && <RooflineCard />}
      {data.ineligible.length > 0 && (
        <Card class="tc-card" title="Matrix work that these Tensor Cores cannot compute" testId="tc-ineligible">
          <Ineligible work={data.ineligible} />
        </Card>
      )}
      {data.kernels.length > 0 && (
        <Card class="tc-card" title="Kernels of eligible ops" testId="tc-kernels">
          <DataTable
            name={`kernels of eligible ops ${data.ref.run}`}
            columns={KERNELS}
            rows={kernels}
            rowId={(row) => row.id}
            onSelect={(row) => goTo("kernels", kernelParam.to(row.id))}
          />
        </Card>
      )}
    </>
  );
}
