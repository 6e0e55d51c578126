/** The module tree as an icicle: a click selects a module and draws it over the full width. */
import { useMemo, useState } from "preact/hooks";
import type { ModuleRow, ModulesPage as ModulesData } from "../../api/types";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Icicle } from "../../components/icicle/Icicle";
import { IcicleLegend } from "../../components/icicle/IcicleLegend";
import { IciclePath } from "../../components/icicle/IciclePath";
import { Switch } from "../../components/Switch";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";
import { LargestModules } from "./LargestModules";
import { moduleNode, timeOf, type Device, type Direction } from "./nodes";
import { keyAbove, keyOf, keysAbove, labelOf, type ModuleTree } from "./tree";

interface ModuleIcicleProps {
  data: ModulesData;
  tree: ModuleTree;
  /** The modules that fit the filters of the table, and those around them; null for all. */
  kept: ReadonlySet<string> | null;
  selected: string | null;
  onSelect: (key: string) => void;
}

const PASSES: Record<Direction, string> = { both: "forward and backward", forward: "forward", backward: "backward" };

export function ModuleIcicle({ data, tree, kept, selected, onSelect }: ModuleIcicleProps) {
  const { model, has_gpu: hasGpu } = data;
  const [device, setDevice] = useState<Device>(hasGpu ? "gpu" : "cpu");
  const [direction, setDirection] = useState<Direction>("both");
  const top = topOf(selected, tree.below);
  const node = useMemo(
    () => moduleNode(tree, top, { model, hasGpu, device, direction, kept }),
    [tree, top, model, hasGpu, device, direction, kept],
  );
  const columns = useMemo(() => columnsOf(model, device, direction), [model, device, direction]);
  const drawn = useMemo(
    () =>
      data.rows.filter(
        (row) =>
          (keyOf(row) === top || keysAbove(keyOf(row)).includes(top)) &&
          (kept?.has(keyOf(row)) ?? true) &&
          (timeOf(row, device, direction) ?? 0) > 0,
      ),
    [data.rows, top, device, direction, kept],
  );
  const labelAt = (key: string): string => labelOf(tree.byKey.get(key)!, model);
  return (
    <Card title="Time by module" class="icicle-card">
      <div class="icicle-bar">
        <IciclePath
          around={keysAbove(top)
            .reverse()
            .map((key) => ({ key, label: labelAt(key) }))}
          shown={labelAt(top)}
          name="Modules around this one"
          testId="modules-path"
          onSelect={onSelect}
        />
        {hasGpu && (
          <Switch
            label="Time of"
            value={device}
            choices={[
              ["gpu", "GPU time"],
              ["cpu", "CPU time"],
            ]}
            onChange={setDevice}
          />
        )}
        <Switch
          label="Pass"
          value={direction}
          choices={[
            ["both", "Both"],
            ["forward", "Forward"],
            ["backward", "Backward"],
          ]}
          onChange={setDirection}
        />
      </div>
      <LargestModules tree={tree} top={top} device={device} direction={direction} onSelect={onSelect} />
      <Drawing name="Time by module" columns={columns} rows={drawn}>
        <Icicle
          top={node}
          above={keyAbove(top)}
          selected={selected}
          name="Modules"
          kinds={["module", "modules"]}
          empty={`No ${direction === "both" ? "" : `${direction} `}${device.toUpperCase()} time in this module.`}
          testId="modules-icicle"
          onSelect={onSelect}
        />
        <IcicleLegend
          width={`${device === "gpu" ? "GPU" : "CPU"} time, ${PASSES[direction]}; order of the first call`}
          share={hasGpu ? "Eligible time" : null}
        />
      </Drawing>
    </Card>
  );
}

/** What the icicle is drawn from. */
function columnsOf(model: string, device: Device, direction: Direction): Column<ModuleRow>[] {
  const of = `${device.toUpperCase()} time${direction === "both" ? "" : `, ${direction}`}`;
  return [
    text("Module", (row) => row.path || model, DEFINITIONS.modulePath),
    text("Type", (row) => row.type, DEFINITIONS.moduleType),
    { ...number<ModuleRow>(of, "ns", (row) => timeOf(row, device, direction)), sums: true },
    { ...number<ModuleRow>("Eligible", "ns", (row) => row.eligible_ns, DEFINITIONS.moduleEligible), sums: true },
    number("TC utilization", "percent", (row) => row.utilization_percent, DEFINITIONS.moduleUtilization),
  ];
}

/** The module to draw over the full width: the selected one, or the one that holds it where it holds none itself. */
function topOf(selected: string | null, below: ReadonlyMap<string, unknown>): string {
  if (selected === null) return ".";
  return below.has(selected) ? selected : (keyAbove(selected) ?? ".");
}
