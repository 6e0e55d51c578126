/** The parts of ECharts that the page draws with; imported lazily by `Chart`, so that it is a chunk of its own. */
import { BarChart, PieChart } from "echarts/charts";
import { BrushComponent, DataZoomInsideComponent, GridComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([BarChart, PieChart, BrushComponent, DataZoomInsideComponent, GridComponent, TooltipComponent, CanvasRenderer]);

export { init };
