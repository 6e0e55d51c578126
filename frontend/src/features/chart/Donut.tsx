/** Parts of the selected iterations in; a donut with its main number in the middle and the values as a list out. */
import type { Slice } from "../../api/types";
import { colourProperty } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatPercent } from "../../format/number";
import { SLICES } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { Legend } from "../../components/Legend";
import { Chart } from "../../components/chart/Chart";
import { tooltipElement, tooltipStyle } from "../../components/chart/tooltip";
import { perStep, useIterations } from "../../components/sums";
import { themeSignal } from "../../state/theme";

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

export function Donut(props: DonutProps) {
  return (
    <Drawing name={props.name} columns={SLICES} rows={props.slices}>
      <Ring {...props} />
    </Drawing>
  );
}

function Ring({ name, slices, context, centre, centreLabel, definitions }: DonutProps) {
  const theme = themeSignal.value;
  const iterations = useIterations();
  const drawn = slices
    .map((slice, index) => ({ ...slice, property: colourProperty(slice.key, index, context) }))
    .filter((slice) => (slice.value_ns ?? 0) > 0);
  return (
    <div class="donut">
      <div class="donut-ring">
        {drawn.length > 0 ? (
          <Chart
            height={SIZE}
            theme={theme}
            inputs={[slices, iterations]}
            label={`${name}: ${slices.map((slice) => `${slice.label} ${formatPercent(slice.percent)}`).join(", ")}`}
            option={(colour) => ({
              animation: false,
              tooltip: {
                ...tooltipStyle(colour),
                confine: false,
                formatter: ({ dataIndex }: { dataIndex: number }) => {
                  const slice = drawn[dataIndex]!;
                  return tooltipElement(slice.label, [
                    {
                      colour: colour(slice.property),
                      label: formatPercent(slice.percent),
                      value: formatNs(perStep(slice.value_ns, iterations)),
                    },
                  ]);
                },
              },
              series: [
                {
                  type: "pie",
                  radius: ["66%", "96%"],
                  label: { show: false },
                  emphasis: { scale: false },
                  itemStyle: { borderColor: colour("--surface"), borderWidth: 2 },
                  data: drawn.map((slice) => ({
                    name: slice.label,
                    value: slice.value_ns,
                    itemStyle: { color: colour(slice.property) },
                  })),
                },
              ],
            })}
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
