/** DLProf's time categories of a recording: which apply, and which takes most. */
import type { Slice } from "../../api/types";

/** Those that only a recording with a GPU can have. */
const ON_GPU: ReadonlySet<string> = new Set(["tensor_core", "other_kernels", "memory"]);

/** Without a GPU its categories are not missing from the recording: they do not apply. */
export const applies = ({ key }: { key: string }, hasGpu: boolean): boolean => hasGpu || !ON_GPU.has(key);

export function largestSlice(slices: readonly Slice[]): Slice | null {
  return slices.reduce<Slice | null>(
    (largest, slice) => ((slice.value_ns ?? 0) > (largest?.value_ns ?? 0) ? slice : largest),
    null,
  );
}
