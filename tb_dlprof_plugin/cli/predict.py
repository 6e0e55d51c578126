"""``tb-dlprof predict``: forecasts the step of a run in another precision."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import print_table
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.pages.forecast import ForecastOp, ForecastPage, forecast_page
from tb_dlprof_plugin.planning import ForecastError


@page_command(forecast_page, refuses=ForecastError)
def predict(page: ForecastPage, limit: Limit = 20) -> None:
    """Forecast the step time in another precision.

    For an FP32 run; also with another batch size or on another GPU. CSV contains the ops.
    """
    say(f"{page.headline}", "")
    print_table(
        (("per step", "left"), ("now", "right"), (page.precision.upper(), "right")),
        [
            ("recorded", f"{page.measured_step_ms:.2f} ms", ""),
            ("without the profiler", f"{page.unprofiled_step_ms:.2f} ms", f"{page.predicted_step_ms:.2f} ms"),
            ("interval", "", f"{interval(page.low_ms, page.high_ms, '{:.2f}'.format)} ms"),
            ("kernels", f"{page.gpu_before_ms:.2f} ms", f"{page.gpu_ms:.2f} ms"),
            ("CPU", "", f"{page.cpu_ms:.2f} ms"),
            (f"casts ({page.casts})", "", f"{page.casts_ms:.2f} ms"),
            *([("GradScaler", "", f"{page.scaler_ms:.2f} ms")] if page.scaler_ms else []),
        ],
    )
    say()
    cells = {"precision": lambda op: op.precision.upper() or "as now"}
    print_rows(ForecastOp, page.ops, limit=limit, total=page.total_rows, cells=cells)
