/**
 * An ECharts option in, a drawing out. It follows its box (a hidden TensorBoard tab has height 0, so it draws only once there is
 * room) and the theme: the option is a function of `colour`, which reads a custom property of the style sheet.
 */
import type { EChartsCoreOption, ECharts } from "echarts/core";
import { useEffect, useRef, useState } from "preact/hooks";

export type Colour = (property: string) => string;

interface ChartProps {
  option: (colour: Colour) => EChartsCoreOption;
  /** The option is built again when one of these changes. */
  inputs: readonly unknown[];
  height: number;
  /** What a screen reader says in place of the drawing. */
  label: string;
  theme: string;
  /** Called once the chart is there, and after each new option. */
  onReady?: (chart: ECharts) => void;
}

export function Chart({ option, inputs, height, label, theme, onReady }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<ECharts | null>(null);

  useEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    let made: ECharts | null = null;
    let gone = false;
    let loading = false;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === 0 || element.clientHeight === 0) return;
      if (made) made.resize();
      else if (!loading) {
        loading = true;
        void import("./echarts").then(({ init }) => {
          if (gone) return;
          made = init(element, null, { renderer: "canvas" });
          setChart(made);
        });
      }
    });
    observer.observe(element);
    return () => {
      gone = true;
      observer.disconnect();
      made?.dispose();
    };
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: callers say by their inputs when the option, a new function in each rendering, differs.
  useEffect(() => {
    if (!chart || !box.current) return;
    const style = getComputedStyle(box.current);
    chart.setOption(
      option((property) => style.getPropertyValue(property).trim()),
      { notMerge: true },
    );
    onReady?.(chart);
  }, [chart, theme, ...inputs]);

  return <div class="chart" ref={box} style={{ height: `${height}px` }} role="img" aria-label={label} />;
}
