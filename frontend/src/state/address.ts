/**
 * Keeps the parameters and the address in step. Another page or another run is a new entry of the browser's history, so that
 * Back returns to the one before; every other change rewrites the present entry.
 */
import { batch, effect } from "@preact/signals";
import { onHashChange, readPairs, writePairs } from "./hash";
import type { AnyParam, Pairs } from "./param";
import { pageParam, profileParam } from "./sharedParams";

let connected: readonly AnyParam[] = [];

/** Reads the address into these parameters and follows both from then on; returns what ends that. */
export function connectAddress(params: readonly AnyParam[]): () => void {
  connected = params;
  const load = (pairs: Pairs): void => {
    const map = new Map(pairs);
    batch(() => {
      for (const param of params) param.load(map);
    });
  };
  load(readPairs());
  let shown = place();
  let first = true;
  let loading = false;
  const stopWriting = effect(() => {
    const pairs = addressPairs(params);
    const now = place();
    // Before a run is chosen nothing was shown to go back to.
    const isNew = !loading && shown.run !== null && (now.page !== shown.page || now.run !== shown.run);
    shown = now;
    // What was just read needs no writing.
    if (!first) writePairs(pairs, isNew ? "push" : "replace");
    first = false;
  });
  const stopReading = onHashChange((pairs) => {
    loading = true;
    load(pairs);
    loading = false;
  });
  return () => {
    stopWriting();
    stopReading();
  };
}

/** The parameters as pairs, defaults left out. */
export const addressPairs = (params: readonly AnyParam[]): Pairs => params.flatMap((param) => param.pairs());

/** The parameters that the address holds. */
export const connectedParams = (): readonly AnyParam[] => connected;

const place = () => ({ page: pageParam.value, run: profileParam.value.run });
