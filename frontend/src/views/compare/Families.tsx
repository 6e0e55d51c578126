/** Kernel time per iteration of each family in both runs: a pair of bars on one scale, the Tensor Core part in its colour. */
import * as columns from "../../api/columns";
import type { CompareKernelFamily } from "../../api/types";
import { Drawing } from "../../components/export/Drawing";
import { tableColumns } from "../../components/table/declared";
import { exactNs, formatNs } from "../../format/duration";
import { formatCount } from "../../format/number";

const COLUMNS = tableColumns(columns.CompareKernelFamily);

export function Families({ families }: { families: CompareKernelFamily[] }) {
  if (families.length === 0) return <p class="muted">Neither run launched a kernel.</p>;
  const scale = Math.max(1, ...families.flatMap((family) => [family.a_ns, family.b_ns]));
  return (
    <Drawing name="Kernel time by family" columns={COLUMNS} rows={families}>
      <ul class="families">
        {families.map((family) => (
          <li key={family.family}>
            <span class="family-name">{family.family}</span>
            <FamilyBar
              name="base"
              ns={family.a_ns}
              tensorCoreNs={family.a_tensor_core_ns}
              calls={family.a_calls}
              scale={scale}
            />
            <FamilyBar
              name="candidate"
              ns={family.b_ns}
              tensorCoreNs={family.b_tensor_core_ns}
              calls={family.b_calls}
              scale={scale}
            />
          </li>
        ))}
      </ul>
      <p class="muted small family-key">
        <span class="swatch" style={{ background: "var(--c-tensor-core)" }} /> on Tensor Cores{" "}
        <span class="swatch" style={{ background: "var(--c-other-kernels)" }} /> other; above: base, below: candidate
      </p>
    </Drawing>
  );
}

interface FamilyBarProps {
  name: string;
  ns: number;
  tensorCoreNs: number;
  calls: number;
  scale: number;
}

function FamilyBar({ name, ns, tensorCoreNs, calls, scale }: FamilyBarProps) {
  return (
    <span class="family-bar">
      <span class="stacked-bar stacked-bar-thin" aria-hidden="true">
        <span style={{ width: `${(tensorCoreNs / scale) * 100}%`, background: "var(--c-tensor-core)" }} />
        <span style={{ width: `${((ns - tensorCoreNs) / scale) * 100}%`, background: "var(--c-other-kernels)" }} />
      </span>
      <span
        class="num"
        title={`${name}: ${exactNs(ns)}, ${formatCount(calls)} calls, ${exactNs(tensorCoreNs)} of it on Tensor Cores`}
      >
        {formatNs(ns)}
      </span>
    </span>
  );
}
