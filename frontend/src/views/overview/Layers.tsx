/** The layers that take most of the step, on the scale of the bar above them; a module unfolds into those in it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { profileQuery } from "../../api/queries";
import type { Layer, ModuleRow, Overview } from "../../api/types";
import { useResource } from "../../api/useResource";
import { CutName } from "../../components/CutName";
import { Term } from "../../components/Term";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { goTo } from "../../state/navigate";
import { filterParam, moduleParam, opTypeParam, profileParam, rangeParam } from "../../state/sharedParams";
import { perStep, useIterations } from "../../components/sums";

/** As many as the page shows at first. */
const INSIDE = 5;

/** The pages that list all of them. */
const PAGE_OF = { module: "modules", op_type: "op_types" } as const;

export function Layers({ data }: { data: Overview }) {
  const { layers } = data;
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const modules = useResource(
    "modules",
    opened.size > 0 ? profileQuery(profileParam.value, rangeParam.value) : null,
    String(profileParam.value.run),
  );
  if (layers.length === 0) return null;
  const toggle = (id: string): void => {
    const next = new Set(opened);
    if (!next.delete(id)) next.add(id);
    setOpened(next);
  };
  const inside = (above: Layer): Layer[] =>
    opened.has(above.id)
      ? (modules.data?.rows ?? [])
          .filter((row) => isIn(row, above))
          .map(asLayer)
          .slice(0, INSIDE)
      : [];
  const rows = (level: number, shown: readonly Layer[]): JSX.Element[] =>
    shown.flatMap((layer) => [
      <Row
        key={layer.id}
        layer={layer}
        level={level}
        stepNs={data.summary.average_iteration_ns}
        count={data.summary.aggregated_iterations}
        open={opened.has(layer.id)}
        onToggle={() => toggle(layer.id)}
      />,
      ...rows(level + 1, inside(layer)),
    ]);
  const page = PAGE_OF[layers[0]!.kind];
  const rest = 100 - layers.reduce((sum, { percent }) => sum + percent, 0);
  return (
    <table class="layers" data-testid="overview-layers" aria-busy={opened.size > 0 && modules.slow}>
      <thead>
        <tr>
          <th scope="col">{layers[0]!.kind === "module" ? "Layer" : "Op type"}</th>
          <th scope="col" class="layer-bar-cell">
            <span class="hidden">Time</span>
          </th>
          {(["forward", "backward"] as const).map((pass) => (
            <th scope="col" key={pass} class="num layer-pass">
              <span class="swatch" style={{ background: colourOf(pass, 0, "parts") }} />{" "}
              {pass === "forward" ? <Term of="moduleForward">Forward</Term> : <Term of="moduleBackward">Backward</Term>}
            </th>
          ))}
          <th scope="col" class="num">
            <Term of="layerShare">{data.has_gpu ? "GPU %" : "CPU %"}</Term>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows(0, layers)}
        {rest >= 0.1 && (
          <tr class="layer-rest">
            <th scope="row">
              <span class="layer-name">
                <span class="fold-none" />
                <button type="button" class="link" data-testid="all-layers" onClick={() => goTo(page)}>
                  all others
                </button>
              </span>
            </th>
            <td class="layer-bar-cell" />
            <td class="layer-pass" />
            <td class="layer-pass" />
            <td class="num">{formatPercent(rest)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

interface RowProps {
  layer: Layer;
  level: number;
  stepNs: number;
  /** The iterations that the times of the layer add up. */
  count: number;
  open: boolean;
  onToggle: () => void;
}

function Row({ layer, level, stepNs, count, open, onToggle }: RowProps) {
  const iterations = useIterations();
  const width = (ns: number) => `${Math.min(100, (100 * ns) / count / stepNs)}%`;
  const rest = layer.total_ns - layer.forward_ns - layer.backward_ns;
  const shown = (ns: number): string => formatNs(perStep(ns, iterations));
  return (
    <tr data-testid={`layer-${layer.id}`}>
      <th scope="row">
        <span class="layer-name" style={{ paddingLeft: `${14 * level}px` }}>
          {layer.holds > 0 ? (
            <button
              type="button"
              class="fold"
              aria-expanded={open}
              aria-label={`${open ? "Hide" : "Show"} what is in ${layer.id}`}
              onClick={onToggle}
            >
              {open ? "▾" : "▸"}
            </button>
          ) : (
            <span class="fold-none" />
          )}
          <button type="button" class="link" title={layer.id} onClick={() => show(layer)}>
            <CutName name={layer.id} />
          </button>
        </span>
      </th>
      <td class="layer-bar-cell" title={`${layer.id}: ${shown(layer.total_ns)}`}>
        <span class="layer-bar">
          <span style={{ width: width(layer.forward_ns), background: colourOf("forward", 0, "parts") }} />
          <span style={{ width: width(layer.backward_ns), background: colourOf("backward", 0, "parts") }} />
          {rest > 0 && <span style={{ width: width(rest), background: colourOf("other", 0, "parts") }} />}
        </span>
      </td>
      <td class="num layer-pass">{shown(layer.forward_ns)}</td>
      <td class="num layer-pass">{shown(layer.backward_ns)}</td>
      <td class="num">{formatPercent(layer.percent)}</td>
    </tr>
  );
}

function show({ kind, id }: Layer): void {
  if (kind === "module") goTo("modules", moduleParam.to(id), filterParam.to(null));
  else goTo("op_types", opTypeParam.to(id), filterParam.to(null));
}

/** Right below, not deeper. */
const isIn = (row: ModuleRow, above: Layer): boolean =>
  row.role === null && row.path.startsWith(`${above.id}.`) && !row.path.slice(above.id.length + 1).includes(".");

const asLayer = (row: ModuleRow): Layer => ({
  kind: "module",
  id: row.path,
  total_ns: row.gpu_ns ?? row.cpu_ns,
  forward_ns: row.gpu_forward_ns ?? row.cpu_forward_ns ?? 0,
  backward_ns: row.gpu_backward_ns ?? row.cpu_backward_ns ?? 0,
  percent: row.gpu_percent ?? row.cpu_percent ?? 0,
  holds: row.children,
});
