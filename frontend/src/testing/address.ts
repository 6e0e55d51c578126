/** An address in, the parameters as they would be after opening it. */
import { batch } from "@preact/signals";
import type { Pairs } from "../state/param";
import { ALL_PARAMS } from "../shell/routes";

export function readAddress(pairs: Pairs = []): void {
  const map = new Map(pairs);
  batch(() => {
    for (const param of ALL_PARAMS) param.load(map);
  });
}
