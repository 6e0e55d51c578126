/** The one changing value of the page: holds a `ViewState`, tells listeners, and keeps the address in step. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { onHashChange, readPairs, writePairs } from "./hash";
import { withoutForeignFilter } from "./subject";
import { pairsToState, stateToPairs, type ViewState } from "./viewState";

export interface Store {
  get(): ViewState;
  set(change: Partial<ViewState>): void;
  subscribe(listener: (state: ViewState) => void): () => void;
  dispose(): void;
}

export function createStore(): Store {
  let state = pairsToState(readPairs());
  const listeners = new Set<(state: ViewState) => void>();
  const publish = (next: ViewState): void => {
    state = next;
    for (const listener of listeners) listener(state);
  };
  const stop = onHashChange((pairs) => publish(pairsToState(pairs)));
  return {
    get: () => state,
    set(change) {
      publish({ ...state, ...withoutForeignFilter(state, change) });
      writePairs(stateToPairs(state));
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    dispose() {
      stop();
      listeners.clear();
    },
  };
}

/** What every component may ask for: the state, and how to change it. */
export interface View {
  state: ViewState;
  set: (change: Partial<ViewState>) => void;
}

export const ViewContext = createContext<View | null>(null);

export function useView(): View {
  const view = useContext(ViewContext);
  if (!view) throw new Error("useView outside of App");
  return view;
}
