/** The values of a donut or bar as a list: colour, label, share and time. Carries everything the drawing shows. */
import type { Slice } from "../api/types";
import { colourOf } from "../format/colours";
import { SLICES } from "../format/definitions";
import { Defined } from "./Term";
import { Sum, Value } from "./Value";

interface LegendProps {
  slices: Slice[];
  context?: string;
  /** What the slices are where the page data says it; else by the context. */
  definitions?: ReadonlyMap<string, string>;
  /** The slices are sums over the selected iterations. */
  sums?: boolean;
  /** Colours and labels alone. */
  plain?: boolean;
}

export function Legend({ slices, context = "", definitions, sums = false, plain = false }: LegendProps) {
  const Time = sums ? Sum : Value;
  return (
    <ul class={plain ? "legend legend-plain" : "legend"}>
      {slices.map((slice, index) => {
        const definition = definitions?.get(slice.key) ?? SLICES[context]?.[slice.key];
        return (
          <li key={slice.key}>
            <span class="swatch" style={{ background: colourOf(slice.key, index, context) }} />
            <span class="legend-label">
              {definition ? <Defined text={definition}>{slice.label}</Defined> : slice.label}
            </span>
            {plain ? null : slice.value_ns === null && slice.percent === null ? (
              <span class="missing legend-missing">not recorded</span>
            ) : (
              <>
                <Value value={slice.percent} unit="percent" />
                <Time value={slice.value_ns} unit="ns" />
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}
