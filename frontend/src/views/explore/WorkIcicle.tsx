/** Ops, op types or kernels as an icicle: a click draws what is in a rectangle over the full width, and selects what it names. */
import { useMemo } from "preact/hooks";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Icicle } from "../../components/icicle/Icicle";
import { IcicleLegend } from "../../components/icicle/IcicleLegend";
import { IciclePath } from "../../components/icicle/IciclePath";
import type { IcicleNode } from "../../components/icicle/layout";
import type { Column } from "../../components/table/columns";
import { useZoom } from "./useZoom";
import { treeOf, wayTo, WHOLE, type Part } from "./workNodes";

/** The share of kernels: all their time could be on Tensor Cores. */
export const WHOLE_TIME = "Time";

interface WorkIcicleProps {
  /** Such as "Time by module and op"; also what the saved picture is called. */
  title: string;
  whole: string;
  parts: readonly Part[];
  kinds: readonly [one: string, several: string];
  hasGpu: boolean;
  /** What the colours are a share of, as the legend says it. */
  share: string;
  /** The key of the selected row. */
  selected: string | null;
  onSelect: (key: string) => void;
}

const COLUMNS: Column<IcicleNode>[] = [
  text("Name", (node) => node.label),
  { ...number<IcicleNode>("Time", "ns", (node) => node.ns), sums: true },
];

const flat = (node: IcicleNode): IcicleNode[] => [node, ...node.below.flatMap(flat)];

export function WorkIcicle({ title, whole, parts, kinds, hasGpu, share, selected, onSelect }: WorkIcicleProps) {
  const root = useMemo(() => treeOf(whole, parts), [whole, parts]);
  const { top, around, above, zoomTo } = useZoom(root);
  const rows = useMemo(() => flat(top), [top]);
  const open = (key: string): void => {
    const found = wayTo(root, key);
    const node = found[found.length - 1]!;
    if (node.below.length > 0) zoomTo(node.key);
    if (key !== WHOLE) onSelect(key);
  };
  return (
    <Card title={title} class="icicle-card">
      <div class="icicle-bar">
        <IciclePath
          around={around}
          shown={top.label}
          name={`${kinds[1]} around this one`}
          testId="icicle-path"
          onSelect={zoomTo}
        />
      </div>
      <Drawing name={title} columns={COLUMNS} rows={rows}>
        <Icicle
          top={top}
          above={above}
          selected={selected}
          name={title}
          kinds={kinds}
          empty="None of the rows shown takes any time."
          testId="work-icicle"
          onSelect={open}
        />
        <IcicleLegend
          width={`${hasGpu ? "GPU" : "CPU self"} time, the largest first`}
          share={hasGpu ? share : null}
          eligible={share !== WHOLE_TIME}
        />
      </Drawing>
    </Card>
  );
}
