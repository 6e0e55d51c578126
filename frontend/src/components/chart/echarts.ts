/** The parts of ECharts that the page draws with; imported lazily by `Chart`, so that it is a chunk of its own. */
import { BarChart, LineChart, PieChart, ScatterChart } from "echarts/charts";
import {
  BrushComponent,
  DataZoomInsideComponent,
  GridComponent,
  MarkLineComponent,
  TooltipComponent,
} from "echarts/components";
import { getInstanceByDom, init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([
  BarChart,
  LineChart,
  PieChart,
  ScatterChart,
  BrushComponent,
  DataZoomInsideComponent,
  GridComponent,
  MarkLineComponent,
  TooltipComponent,
  CanvasRenderer,
]);

export { getInstanceByDom, init };
