/** Changes what is drilled into. The address then names both runs, so that it shows the same elsewhere. */
import type { ComparePage } from "../../api/types";
import { assign, type Assignment } from "../../state/param";
import { baseParam, candidateParam } from "./params";

export function drill(data: ComparePage, ...changes: readonly Assignment[]): void {
  assign(
    ...changes,
    baseParam.to({ ...baseParam.value, run: data.a.ref.run }),
    candidateParam.to({ ...candidateParam.value, run: data.b.ref.run }),
  );
}
