/** One op of both runs: what it launched before and after. */
import type { Query } from "../../api/source";
import * as columns from "../../api/columns";
import type { CompareKernel, CompareOpDetail } from "../../api/types";
import { useResource } from "../../api/useResource";
import { Facts } from "../../components/Facts";
import { ResourceView } from "../../features/ResourceView";
import { tableColumns } from "../../components/table/declared";
import { DataTable } from "../../components/table/DataTable";
import { Term } from "../../components/Term";
import { Text, Value } from "../../components/Value";
import { Difference } from "./drillColumns";

const KERNELS = tableColumns(columns.CompareKernel, {
  name: {
    cell: (row) => (
      <span title={row.name}>
        {row.short_name} {row.cast && <span class="compare-mark">cast</span>}
      </span>
    ),
  },
});

export function OpKernels({ query, id }: { query: Query; id: string }) {
  const resource = useResource("compare_op", { ...query, id }, id);
  return <ResourceView resource={resource}>{(detail) => <Detail detail={detail} />}</ResourceView>;
}

function Detail({ detail }: { detail: CompareOpDetail }) {
  const { op } = detail;
  return (
    <div data-testid="compare-op">
      <h3 class="op-title">{op.name}</h3>
      <div class="grid grid-halves">
        <Side
          title="Base"
          ns={op.a_ns}
          castNs={op.a_cast_ns}
          precision={op.a_precision}
          roof={op.a_roof_percent}
          kernels={detail.a_kernels}
          module={op.module}
          testId="kernels-before"
        />
        <Side
          title="Candidate"
          ns={op.b_ns}
          castNs={op.b_cast_ns}
          precision={op.b_precision}
          roof={op.b_roof_percent}
          kernels={detail.b_kernels}
          module={op.b_module}
          testId="kernels-after"
        />
      </div>
      <Facts
        rows={[
          ["Change", <Difference row={op} />],
          [<Term of="speedup">Speedup</Term>, <Value value={op.speedup} unit="ratio" missing="–" />],
          [
            <Term of="changeShare">Of the step's change</Term>,
            <Value value={op.change_percent} unit="percent" missing="–" />,
          ],
          ...(detail.reason_text ? [["In one run only", detail.reason_text] as [string, string]] : []),
        ]}
      />
    </div>
  );
}

interface SideProps {
  title: string;
  ns: number | null;
  castNs: number | null;
  precision: string;
  roof: number | null;
  kernels: CompareKernel[];
  module: string;
  testId: string;
}

function Side({ title, ns, castNs, precision, roof, kernels, module, testId }: SideProps) {
  return (
    <section aria-label={title} data-testid={testId}>
      <h3>{title}</h3>
      <Facts
        rows={[
          ["Time", <Value value={ns} unit="ns" missing="not in run" />],
          ["of it casts", <Value value={castNs} unit="ns" missing="–" />],
          [<Term of="precision">Precision</Term>, <Text value={precision} missing="–" />],
          [<Term of="ofRoof">Of its roof</Term>, <Value value={roof} unit="percent" missing="unknown" />],
          ["Module", <Text value={module} missing="none" />],
        ]}
      />
      <DataTable
        name={`${title} kernels`}
        plain
        columns={KERNELS}
        rows={kernels}
        rowId={(row) => `${row.name} ${row.cast}`}
      />
    </section>
  );
}
