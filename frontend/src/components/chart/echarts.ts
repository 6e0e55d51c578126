/** The parts of ECharts that the page draws with; imported lazily by `Chart`, so that it is a chunk of its own. */
import { BarChart, LineChart, ScatterChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent, TooltipComponent } from "echarts/components";
import { getInstanceByDom, init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([BarChart, LineChart, ScatterChart, DataZoomInsideComponent, GridComponent, TooltipComponent, CanvasRenderer]);

export { getInstanceByDom, init };
