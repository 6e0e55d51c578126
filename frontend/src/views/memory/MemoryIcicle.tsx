/** The memory at the peak as an icicle: modules within modules, and in each what holds it; a click zooms in. */
import { useMemo } from "preact/hooks";
import type { MemoryCategory, MemoryPart } from "../../api/types";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Icicle } from "../../components/icicle/Icicle";
import { IciclePath } from "../../components/icicle/IciclePath";
import type { Column } from "../../components/table/columns";
import { Term } from "../../components/Term";
import { colourOf } from "../../format/colours";
import { formatBytes } from "../../format/number";
import { useZoom } from "../explore/useZoom";
import { wayTo } from "../explore/workNodes";
import { partsTree } from "./partsTree";

interface MemoryIcicleProps {
  parts: MemoryPart[];
  categories: readonly MemoryCategory[];
}

export function MemoryIcicle({ parts, categories }: MemoryIcicleProps) {
  const labels = useMemo(() => new Map(categories.map(({ key, label }) => [key as string, label])), [categories]);
  const root = useMemo(() => partsTree(parts, labels), [parts, labels]);
  const { top, around, above, zoomTo } = useZoom(root);
  const columns = useMemo<Column<MemoryPart>[]>(
    () => [
      text("Module", (part) => part.module),
      text("Category", (part) => labels.get(part.category) ?? part.category),
      number("At the peak", "bytes", (part) => part.bytes),
    ],
    [labels],
  );
  const open = (key: string): void => {
    const found = wayTo(root, key);
    const node = found[found.length - 1]!;
    zoomTo(node.below.length > 0 ? node.key : found[found.length - 2]!.key);
  };
  return (
    <Card title={<Term of="memoryAtPeak">Memory at the peak by module</Term>} class="icicle-card" testId="memory-tree">
      <div class="icicle-bar">
        <IciclePath
          around={around}
          shown={top.label}
          name="Modules around this one"
          testId="memory-path"
          onSelect={zoomTo}
        />
      </div>
      <Drawing name="Memory at the peak by module" columns={columns} rows={parts}>
        <Icicle
          top={top}
          above={above}
          selected={null}
          name="Memory at the peak"
          kinds={["part", "parts"]}
          empty="Nothing was allocated."
          testId="memory-icicle"
          format={formatBytes}
          by="size"
          onSelect={open}
        />
        <div class="icicle-legend">
          <span class="icicle-width">Width: bytes at the peak, the largest first</span>
          {categories
            .filter(({ bytes }) => bytes)
            .map(({ key, label }) => (
              <span key={key}>
                <i class="icicle-swatch" style={{ "--cell": colourOf(key, 0, "memory") }} aria-hidden="true" />
                {label}
              </span>
            ))}
        </div>
      </Drawing>
    </Card>
  );
}
