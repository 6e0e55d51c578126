/** Parts of the selected iterations as a bar with its list. */
import type { Slice } from "../api/types";
import { SLICES } from "./export/columns";
import { Drawing } from "./export/Drawing";
import { Legend } from "./Legend";
import { StackedBar, sumNs } from "./StackedBar";

interface PartsBarProps {
  name: string;
  slices: Slice[];
  context?: string;
  definitions?: ReadonlyMap<string, string>;
}

export function PartsBar({ name, slices, context = "", definitions }: PartsBarProps) {
  return (
    <Drawing name={name} columns={SLICES} rows={slices}>
      <StackedBar slices={slices} scaleNs={sumNs(slices)} context={context} sums />
      <Legend slices={slices} sums context={context} {...(definitions ? { definitions } : {})} />
    </Drawing>
  );
}
