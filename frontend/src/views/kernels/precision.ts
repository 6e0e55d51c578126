/** A kernel's precision as text: "–" where it does not apply, because the kernel does not use Tensor Cores; null where unknown. */
import type { KernelRow, OpKernel } from "../../api/types";

export function precisionOf(row: KernelRow | OpKernel): string | null {
  return row.precision || (row.tensor_core === "no" ? "–" : null);
}
