/** Parts of the selected iterations in; a donut with its main number in the middle and the values as a list out. */
import type { Slice } from "../../api/types";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { SLICES } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Legend } from "../../components/Legend";
import { perStep, useIterations } from "../../components/sums";

interface DonutProps {
  name: string;
  slices: Slice[];
  context: string;
  /** The number in the middle and what it is. */
  centre: number | null;
  centreLabel: string;
  definitions?: ReadonlyMap<string, string>;
}

const SIZE = 148;
/** Radii of the ring in px. Browsers measure dashes too coarsely where a drawing is a few units wide. */
const INNER = 49;
const OUTER = 71;
const RADIUS = (INNER + OUTER) / 2;
const AROUND = 2 * Math.PI * RADIUS;

export function Donut(props: DonutProps) {
  return (
    <Drawing name={props.name} columns={SLICES} rows={props.slices}>
      <Ring {...props} />
    </Drawing>
  );
}

function Ring({ name, slices, context, centre, centreLabel, definitions }: DonutProps) {
  const drawn = slices
    .map((slice, index) => ({ ...slice, property: colourProperty(slice.key, index, context) }))
    .filter((slice) => (slice.value_ns ?? 0) > 0);
  return (
    <div class="donut">
      <div class="donut-ring">
        {drawn.length > 0 ? (
          <Arcs
            slices={drawn}
            label={`${name}: ${slices.map((slice) => `${slice.label} ${formatPercent(slice.percent)}`).join(", ")}`}
          />
        ) : (
          <div class="donut-empty" style={{ width: `${SIZE}px`, height: `${SIZE}px` }} />
        )}
        <div class="donut-centre">
          <span class={centre === null ? "missing" : "donut-number"}>{formatPercent(centre)}</span>
          <span class="donut-label">{centreLabel}</span>
        </div>
      </div>
      {slices.length > 0 ? (
        <Legend slices={slices} sums context={context} {...(definitions ? { definitions } : {})} />
      ) : (
        <p class="missing donut-none">no GPU work recorded</p>
      )}
    </div>
  );
}

/** The slices clockwise from the top, each an arc that says on hover what it is. */
function Arcs({ slices, label }: { slices: (Slice & { property: string })[]; label: string }) {
  const iterations = useIterations();
  const whole = slices.reduce((sum, { value_ns }) => sum + value_ns!, 0);
  let before = 0;
  const arcs = slices.map((slice) => {
    const arc = { slice, start: before / whole, share: slice.value_ns! / whole };
    before += slice.value_ns!;
    return arc;
  });
  return (
    <svg
      class="donut-arcs"
      viewBox={`${-SIZE / 2} ${-SIZE / 2} ${SIZE} ${SIZE}`}
      width={SIZE}
      height={SIZE}
      role="img"
      aria-label={label}
    >
      {arcs.map(({ slice, start, share }) => (
        <circle
          key={slice.key}
          r={RADIUS}
          stroke-width={OUTER - INNER}
          stroke-dasharray={`${AROUND * share} ${AROUND}`}
          transform={`rotate(${360 * start - 90})`}
          style={{ stroke: `var(${slice.property})` }}
          data-tip={`${slice.label}: ${formatPercent(slice.percent)}, ${formatNs(perStep(slice.value_ns, iterations))}`}
        />
      ))}
      {arcs.length > 1 &&
        arcs.map(({ slice, start }) => (
          <line key={slice.key} x1={INNER} x2={OUTER} transform={`rotate(${360 * start - 90})`} />
        ))}
    </svg>
  );
}
