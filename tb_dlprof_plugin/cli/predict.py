"""``tb-dlprof predict``: forecasts the step of a run in another precision."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import print_table
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.pages.forecast import ForecastPage, forecast_page
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
    print_table(
        (
            ("Op", "left"),
            ("direction", "left"),
            ("kernels now", "right"),
            ("forecast", "right"),
            ("times as fast", "right"),
            ("casts", "right"),
            ("would run in", "left"),
        ),
        [
            (
                op.name,
                op.direction,
                f"{op.measured_ms:.3f} ms",
                f"{op.predicted_ms:.3f} ms",
                f"{op.measured_ms / op.predicted_ms:.2f}" if op.predicted_ms else "-",
                f"{op.casts_ms:.3f} ms" if op.casts_ms else "",
                op.precision.upper() or "as now",
            )
            for op in page.ops[:limit]
        ],
    )
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
