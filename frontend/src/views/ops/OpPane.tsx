/** The selected op: asks for its details and shows them. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { ErrorMessage } from "../../components/Message";
import { useView } from "../../state/store";
import { OpDetails } from "./OpDetails";

export function OpPane({ id, hasGpu }: { id: string; hasGpu: boolean }) {
  const { state, set } = useView();
  const resource = useResource("op", { ...profileQuery(state.profile, state.range), id }, `${state.profile.run} ${id}`);
  return (
    <aside class="pane" aria-label="Selected op" data-testid="op-detail" aria-busy={resource.stale}>
      <button type="button" class="button button-small pane-close" onClick={() => set({ op: null })} aria-label="Close the selected op">
        ✕
      </button>
      {resource.error && <ErrorMessage text={resource.error.message} />}
      {resource.data && <OpDetails data={resource.data} hasGpu={hasGpu} />}
      {!resource.data && resource.slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </aside>
  );
}
