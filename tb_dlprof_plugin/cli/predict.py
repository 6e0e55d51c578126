"""``tb-dlprof predict``: forecasts the step of a run in another precision."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Cycle, Limit, Output, OutputFormat, Rank, Session, Source, TableName
from tb_dlprof_plugin.cli.printing import print_page, print_table
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.pages.forecast import ForecastOp, ForecastPage, forecast_page
from tb_dlprof_plugin.planning import ForecastError


class Precision(str, Enum):
    """The precision to forecast."""

    bf16 = "bf16"
    fp16 = "fp16"
    tf32 = "tf32"
    fp32 = "fp32"


def predict(
    source: Source,
    precision: Annotated[
        Precision,
        typer.Option(help="bf16 and fp16: autocast (fp16 with GradScaler); tf32: TF32 allowed; fp32: as recorded."),
    ],
    batch_size: Annotated[int | None, typer.Option(help="Batch size; that of the run by default.")] = None,
    gpu: Annotated[
        str | None, typer.Option(help="GPU, by the name that CUDA reports; that of the run by default.")
    ] = None,
    limit: Limit = 20,
    cycle: Cycle = None,
    rank: Rank = None,
    session: Session = None,
    output: Output = OutputFormat.text,
    table: TableName = None,
) -> None:
    """Forecast the step time in another precision.

    For an FP32 run; also with another batch size or on another GPU. CSV contains the ops.
    """
    chosen = choose(source, cycle, rank, None, None, session)
    try:
        page = forecast_page(chosen.view, chosen.ref, precision.value, batch_size, gpu)
    except ForecastError as error:
        refuse(f"{source}: {error}")
    print_page(page, output, table, text=lambda: _print_text(page, limit))


def _print_text(page: ForecastPage, limit: int) -> None:
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
