/** Changes what is drilled into. The address then names both runs, so that it shows the same elsewhere. */
import type { ComparePage } from "../../api/types";
import { useView } from "../../state/store";
import type { ViewState } from "../../state/viewState";

type Chosen = Partial<Pick<ViewState, "bucket" | "pairModule" | "pair">>;

export function useDrill(data: ComparePage): (change: Chosen) => void {
  const { state, set } = useView();
  return (change) => set({ ...change, a: { ...state.a, run: data.a.ref.run }, b: { ...state.b, run: data.b.ref.run } });
}
