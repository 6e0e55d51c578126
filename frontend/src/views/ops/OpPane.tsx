/** The selected op: asks for its details and shows them. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { ErrorMessage } from "../../components/Message";
import { Pane } from "../../components/Pane";
import { OpDetails } from "./OpDetails";
import { assign } from "../../state/param";
import { opParam, profileParam, rangeParam } from "../../state/sharedParams";

export function OpPane({ id, hasGpu }: { id: string; hasGpu: boolean }) {
  const resource = useResource(
    "op",
    { ...profileQuery(profileParam.value, rangeParam.value), id },
    `${profileParam.value.run} ${id}`,
  );
  return (
    <Pane of="op" testId="op-detail" busy={resource.stale} onClose={() => assign(opParam.to(null))}>
      {resource.error && (
        <ErrorMessage text={resource.error.message} onRetry={resource.retry} old={resource.data !== null} />
      )}
      {resource.data && <OpDetails data={resource.data} hasGpu={hasGpu} />}
      {!resource.data && resource.slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Pane>
  );
}
