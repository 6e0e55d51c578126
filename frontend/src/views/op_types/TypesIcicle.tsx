/** Op types, their ops and the kernels of these as an icicle: asks for the tree and draws the types that are shown. */
import { useMemo } from "preact/hooks";
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { ErrorMessage } from "../../components/Message";
import { goTo } from "../../state/navigate";
import { assign } from "../../state/param";
import { kernelParam, opTypeParam, profileParam, rangeParam } from "../../state/sharedParams";
import { WorkIcicle } from "../explore/WorkIcicle";
import { typeParts } from "../explore/workNodes";

export function TypesIcicle({ types, selected }: { types: ReadonlySet<string>; selected: string | null }) {
  const { data, error, retry, slow } = useResource(
    "work_tree",
    profileQuery(profileParam.value, rangeParam.value),
    String(profileParam.value.run),
  );
  const parts = useMemo(() => (data ? typeParts(data, types) : []), [data, types]);
  if (error && !data) return <ErrorMessage text={error.message} onRetry={retry} />;
  if (!data) return slow ? <div class="skeleton skeleton-table" role="status" aria-label="Loading" /> : null;
  const select = (key: string): void => {
    if (types.has(key)) assign(opTypeParam.to(key));
    // Of a kernel in an op: the last part of its key is the kernel's id.
    else if (key.startsWith("k:")) goTo("kernels", kernelParam.to(key.slice(key.lastIndexOf(":") + 1)));
  };
  return (
    <WorkIcicle
      title="Time by op type, op and kernel"
      whole="all op types"
      parts={parts}
      kinds={["part", "parts"]}
      hasGpu={data.has_gpu}
      share="Eligible time"
      selected={selected}
      onSelect={select}
    />
  );
}
