/**
 * The ops over their FLOPs per byte, under the roofs of their GPU; both axes logarithmic, the area of a point is its time. A roof
 * in which no op ran is drawn lighter: it is where another precision would lead. Ops above their own roof have a ring.
 */
import type { RooflinePage } from "../../api/types";
import { apart, decades, type Label } from "../../components/chart/axis";
import { Chart, type Plot, type Tip } from "../../components/chart/Chart";
import { useIterations } from "../../components/sums";
import { Drawing } from "../../components/export/Drawing";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatByteRate, formatPercent, threeDigits } from "../../format/number";
import { formatUnit } from "../../format/unit";
import { COLUMNS } from "./columns";
import { alongLine, extent, memoryLine, pointSize, points, reasonsAbove, roofLine, type Point } from "./roofs";

interface RooflineChartProps {
  data: RooflinePage;
  /** Ops that stand out; null for all. */
  only?: ReadonlySet<string> | null;
  onOp: (id: string) => void;
}

export function RooflineChart(props: RooflineChartProps) {
  const drawn = points(props.data.ops);
  return (
    <Drawing name="Rate of each op under the GPU's roofs" columns={COLUMNS} rows={props.data.ops}>
      <Points {...props} drawn={drawn} />
      <Above drawn={drawn} />
    </Drawing>
  );
}

/** What a ring means, with the reasons of this run; nothing where no op is above its roof. */
function Above({ drawn }: { drawn: readonly Point[] }) {
  const reasons = reasonsAbove(drawn);
  if (reasons.length === 0) return null;
  return (
    <ul class="roof-above small" data-testid="roofline-above">
      {reasons.map(({ why, ops }) => (
        <li key={why}>
          <span class="roof-ring" aria-hidden="true" /> Above the roof, {ops === 1 ? "1 op" : `${ops} ops`}: {why}.
        </li>
      ))}
    </ul>
  );
}

const colourIn = (precision: string): string => (precision ? colourOf(precision, 0, "ran_in") : "var(--c-unknown)");
/** Between a roof and its name. */
const ABOVE_PX = 5;

function Points({ data, only = null, onOp, drawn }: RooflineChartProps & { drawn: readonly Point[] }) {
  const iterations = useIterations();
  const bandwidth = data.bytes_per_second;
  const roofs = bandwidth === null ? [] : data.roofs;
  const area = extent(drawn, roofs, bandwidth);
  const most = Math.max(0, ...drawn.map(({ op }) => op.gpu_ns));
  // The largest first, so that smaller ones lie on them.
  const ordered = [...drawn].sort((one, other) => other.op.gpu_ns - one.op.gpu_ns);
  const draw = (plot: Plot) => {
    const { x, y } = plot;
    const memory = bandwidth === null ? [] : memoryLine(roofs, bandwidth, area);
    const named = alongLine(memory, 0.8);
    const at = (line: readonly (readonly [number, number])[]): string =>
      line.map(([intensity, rate]) => `${x.at(intensity)},${y.at(rate)}`).join(" ");
    const labels: (Label & { muted: boolean })[] = [
      ...roofs.map((roof) => ({
        // That a dashed roof is without Tensor Cores is said above the chart.
        text: `${roof.label.replace(" without Tensor Cores", "")}: ${formatUnit(roof.flops_per_second, "flops_per_second")}`,
        right: plot.width,
        y: y.at(roof.flops_per_second) - ABOVE_PX,
        muted: !roof.reached,
      })),
      ...(named === null
        ? []
        : [
            {
              text: `Memory: ${formatByteRate(bandwidth)}`,
              right: x.at(named[0]),
              y: y.at(named[1]) - ABOVE_PX,
              muted: false,
            },
          ]),
    ];
    const bases = apart(labels);
    return (
      <>
        <polyline class="roof-line" points={at(memory)} style={{ stroke: "var(--muted)", strokeWidth: 2 }} />
        {/* Roofs in which ops ran last, so that they are on top. */}
        {[...roofs]
          .sort((one, other) => Number(one.reached) - Number(other.reached))
          .map((roof) => (
            <polyline
              key={roof.label}
              class={`roof-line${roof.reached ? "" : " roof-unreached"}${roof.tensor_cores ? "" : " roof-dashed"}`}
              points={at(roofLine(roof, bandwidth!, area))}
              style={{ stroke: colourIn(roof.precision) }}
            />
          ))}
        {ordered.map(({ op, intensity, rate }) => (
          <circle
            key={op.id}
            class={`roof-op${op.why_above_roof ? " roof-op-above" : ""}${only === null || only.has(op.id) ? "" : " roof-op-faint"}`}
            cx={x.at(intensity)}
            cy={y.at(rate)}
            r={pointSize(op.gpu_ns, most) / 2}
            style={{ fill: colourIn(op.precision) }}
            onClick={() => onOp(op.id)}
          />
        ))}
        {labels.map(({ text, right, muted }, index) => (
          <text
            key={text}
            class={`roof-name${muted ? "" : " roof-name-reached"}`}
            x={right}
            y={bases[index]}
            text-anchor="end"
          >
            {text}
          </text>
        ))}
      </>
    );
  };
  const tip = ({ x, y }: Plot, across: number, down: number): Tip | null => {
    const found = [...ordered]
      .reverse()
      .find(
        ({ op, intensity, rate }) =>
          Math.hypot(x.at(intensity) - across, y.at(rate) - down) <= pointSize(op.gpu_ns, most) / 2 + 1,
      );
    if (!found) return null;
    const { op, intensity, rate } = found;
    return {
      title: op.direction ? `${op.name} (${op.direction})` : op.name,
      lines: [
        { colour: colourIn(op.precision), label: "Ran in", value: op.precision.toUpperCase() || "unknown" },
        { label: "Rate", value: formatUnit(rate, "flops_per_second") },
        { label: "Its roof", value: formatUnit(op.ceiling_flops_per_second, "flops_per_second") },
        { label: "Of the roof", value: formatPercent(op.percent_of_ceiling) },
        { label: "FLOPs per byte", value: threeDigits(intensity) },
        { label: "GPU time", value: formatNs(op.gpu_ns / iterations) },
      ],
      ...(op.why_above_roof ? { note: `Above its roof: ${op.why_above_roof}.` } : {}),
    };
  };
  return (
    <Chart
      height={380}
      top={30}
      right={24}
      label={`Rate over FLOPs per byte of ${drawn.length} ops, under ${roofs.length} roofs; the table below holds the values.`}
      x={{ ...decades(area.x, threeDigits), title: "Arithmetic intensity (FLOPs per byte)" }}
      y={() => ({ ...decades(area.y, (rate) => formatUnit(rate, "flops_per_second"), true), title: "Rate (FLOP/s)" })}
      draw={draw}
      inputs={[data, only]}
      tip={tip}
    />
  );
}
