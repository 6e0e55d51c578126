/** The node of a tree that an icicle draws over the full width, with the way to it from the root. */
import { useMemo, useState } from "preact/hooks";
import type { IcicleNode } from "../../components/icicle/layout";
import { wayTo, WHOLE } from "./workNodes";

interface Zoom {
  top: IcicleNode;
  /** What is around it, from the outside. */
  around: IcicleNode[];
  /** The key of the node right around it; null for the whole. */
  above: string | null;
  zoomTo: (key: string) => void;
}

export function useZoom(root: IcicleNode): Zoom {
  const [zoomed, zoomTo] = useState(WHOLE);
  const way = useMemo(() => wayTo(root, zoomed), [root, zoomed]);
  return { top: way[way.length - 1]!, around: way.slice(0, -1), above: way[way.length - 2]?.key ?? null, zoomTo };
}
