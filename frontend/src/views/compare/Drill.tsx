/** From a bar of the waterfall to the modules it is made of, from a module to its ops, from an op to its kernels. */
import { useMemo } from "preact/hooks";
import type { Query } from "../../api/source";
import type { ComparePage } from "../../api/types";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { formatNs } from "../../format/duration";
import { drill } from "./drillInto";
import { keyOfModule, moduleLabel, modulesOf, opsOf } from "./drill";
import { moduleColumns, opColumns } from "./drillColumns";
import { OpKernels } from "./OpKernels";
import { bucketParam, pairModuleParam, pairParam } from "./params";
import { useParam } from "../../state/param";

export function Drill({ data, query }: { data: ComparePage; query: Query }) {
  const bucket = data.buckets.find((candidate) => candidate.key === bucketParam.value) ?? null;
  const op = data.ops.find((row) => row.id === pairParam.value) ?? null;
  const moduleKey = useParam(pairModuleParam);
  const modules = useMemo(() => modulesOf(data, bucket?.key ?? null), [data, bucket]);
  const ops = useMemo(
    () => (moduleKey === null ? [] : opsOf(data, bucket?.key ?? null, moduleKey)),
    [data, bucket, moduleKey],
  );
  const columns = useMemo(
    () => ({ modules: moduleColumns(data, bucket), ops: opColumns(data, bucket) }),
    [data, bucket],
  );
  const pair = `${data.a.ref.run} ${data.b.ref.run}`;
  return (
    <Card title="What changed" testId="compare-drill">
      <nav class="crumbs" aria-label="Path" data-testid="compare-crumbs">
        <Crumb
          label={bucket ? bucket.label : "All time"}
          here={moduleKey === null && pairParam.value === null}
          onClick={() => drill(data, pairModuleParam.to(null), pairParam.to(null))}
        />
        {moduleKey !== null && (
          <Crumb
            label={moduleLabel(moduleKey === "." ? "" : moduleKey)}
            here={pairParam.value === null}
            onClick={() => drill(data, pairParam.to(null))}
          />
        )}
        {pairParam.value !== null && (
          <Crumb label={op ? `${op.op_type} ${op.direction}`.trim() : "an op"} here onClick={() => undefined} />
        )}
        {bucket && (
          <button
            type="button"
            class="button button-small"
            data-testid="bucket-clear"
            onClick={() => drill(data, bucketParam.to(null))}
          >
            Show all time
          </button>
        )}
      </nav>
      {pairParam.value !== null ? (
        <OpKernels query={query} id={pairParam.value} />
      ) : moduleKey !== null ? (
        <DataTable
          name={`compare ops ${pair}`}
          testId="drill-ops"
          columns={columns.ops}
          rows={ops}
          rowId={(row) => row.id}
          onSelect={(row) => drill(data, pairParam.to(row.id))}
        />
      ) : (
        <>
          <DataTable
            name={`compare modules ${pair}`}
            testId="drill-modules"
            columns={columns.modules}
            rows={modules}
            rowId={(row) => keyOfModule(row.module)}
            totalRows={bucket ? modules.length : data.total_modules}
            onSelect={(row) => drill(data, pairModuleParam.to(keyOfModule(row.module)))}
          />
          {bucket && (bucket.base_outside_ns > 0 || bucket.candidate_outside_ns > 0) && (
            <p class="muted small" data-testid="drill-outside">
              In no op shown: {formatNs(bucket.base_outside_ns)} in the base, {formatNs(bucket.candidate_outside_ns)} in
              the candidate.
            </p>
          )}
        </>
      )}
    </Card>
  );
}

function Crumb({ label, here, onClick }: { label: string; here: boolean; onClick: () => void }) {
  return here ? (
    <span class="crumb" aria-current="page">
      {label}
    </span>
  ) : (
    <button type="button" class="link crumb" onClick={onClick}>
      {label}
    </button>
  );
}
