/** The selected op: asks for its details and shows them. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { ErrorMessage } from "../../components/Message";
import { Pane } from "../../components/Pane";
import { useView } from "../../state/store";
import { OpDetails } from "./OpDetails";

export function OpPane({ id, hasGpu }: { id: string; hasGpu: boolean }) {
  const { state, set } = useView();
  const resource = useResource("op", { ...profileQuery(state.profile, state.range), id }, `${state.profile.run} ${id}`);
  return (
    <Pane of="op" testId="op-detail" busy={resource.stale} onClose={() => set({ op: null })}>
      {resource.error && <ErrorMessage text={resource.error.message} onRetry={resource.retry} old={resource.data !== null} />}
      {resource.data && <OpDetails data={resource.data} hasGpu={hasGpu} />}
      {!resource.data && resource.slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Pane>
  );
}
