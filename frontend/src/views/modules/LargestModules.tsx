/** Where most of the icicle's time is, in words: "layer3 takes 34 % of the GPU time; most of it in layer3.0.conv2, 7 %". */
import type { ModuleRow } from "../../api/types";
import { formatPercent } from "../../format/number";
import { largestPath, shareOf } from "./largestPath";
import type { Device, Direction } from "./nodes";
import { keyOf, type ModuleTree } from "./tree";

interface LargestModulesProps {
  tree: ModuleTree;
  /** The module drawn over the full width. */
  top: string;
  device: Device;
  direction: Direction;
  onSelect: (key: string) => void;
}

export function LargestModules({ tree, top, device, direction, onSelect }: LargestModulesProps) {
  const found = largestPath(tree, top, device, direction);
  if (found === null) return null;
  const share = (row: ModuleRow): string => formatPercent(shareOf(tree, row, device, direction));
  const link = (row: ModuleRow) => (
    <button type="button" class="link" onClick={() => onSelect(keyOf(row))}>
      {row.path}
    </button>
  );
  const { branch, leaf, elsewhere } = found;
  return (
    <p class="icicle-words" data-testid="modules-largest">
      {link(branch)} takes {share(branch)} of the {device.toUpperCase()} time
      {direction !== "both" && ` of the ${direction} pass`}
      {leaf && (
        <>
          ; most in {link(leaf)}, {share(leaf)}
        </>
      )}
      {elsewhere && (
        <>
          . Of innermost modules {link(elsewhere)} takes most, {share(elsewhere)}
        </>
      )}
      .
    </p>
  );
}
