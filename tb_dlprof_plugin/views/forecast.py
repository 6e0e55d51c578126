"""The forecast panel: what a run's step would take in another precision, and what that consists of."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.comparison.forecast import Forecast, forecast
from tb_dlprof_plugin.measures import Frame
from tb_dlprof_plugin.measures.frame import op_name
from tb_dlprof_plugin.storage.header import header_of
from tb_dlprof_plugin.views.common import DIRECTIONS, Direction, RunRef

_MS = 1e6
_SAME = 0.03
"""A predicted difference below this share is called none: CPU-paced steps vary more from run to run."""
_LIMITS = {
    "gpu": "the GPU's kernels set the pace",
    "cpu": "the CPU sets the pace: it launches kernels more slowly than the GPU runs them",
    "dataloader": "the loading of data sets the pace",
    "both": "CPU and GPU wait for each other in turns",
}


class ForecastOp(msgspec.Struct, frozen=True):
    """Kernel time of one op per iteration, as measured and as forecast; ``casts_ms`` comes on top.

    ``precision`` is what its kernels would compute in, "" for an op that keeps its time.
    """

    id: str
    name: str
    module: str
    op_type: str
    direction: Direction
    measured_ms: float
    predicted_ms: float
    casts_ms: float
    precision: str


class ForecastPage(msgspec.Struct, frozen=True):
    """Times per step in ms. ``measured_step_ms`` is the recorded step, which the profiler made longer where the CPU
    sets the pace; ``unprofiled_step_ms`` is the estimate of it without the profiler, which ``speedup`` is against.
    """

    ref: RunRef
    model: str
    gpu: str
    precision: str
    batch_size: int | None
    headline: str
    measured_step_ms: float
    unprofiled_step_ms: float
    predicted_step_ms: float
    low_ms: float
    high_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    limited_by: str
    limit_text: str
    gpu_ms: float
    gpu_before_ms: float
    cpu_ms: float
    casts: int
    casts_ms: float
    scaler_ms: float
    total_rows: int
    ops: list[ForecastOp]


def forecast_page(
    frame: Frame, ref: RunRef, precision: str, batch_size: int | None = None, gpu: str | None = None
) -> ForecastPage:
    """The forecast of a run.

    Raises:
        ForecastError: there is none; the text says why.
    """
    found = forecast(frame, precision, batch_size, gpu)
    header, groups, strings = header_of(frame.profile), frame.groups, frame.profile.strings
    ops = [
        ForecastOp(
            id=groups.ids[op.group],
            name=op_name(strings[groups.module[op.group]], strings[groups.op_type[op.group]]),
            module=strings[groups.module[op.group]],
            op_type=strings[groups.op_type[op.group]],
            direction=DIRECTIONS.get(int(groups.role[op.group]), ""),
            measured_ms=_ms(op.measured_ns),
            predicted_ms=_ms(op.predicted_ns),
            casts_ms=_ms(op.casts_ns),
            precision=op.precision,
        )
        for op in found.ops
    ]
    recorded = frame.profile.facts.batch_size
    return ForecastPage(
        ref=ref,
        model=header.model,
        gpu=found.target.new_gpu,
        precision=precision,
        batch_size=batch_size or recorded,
        headline=_headline(found),
        measured_step_ms=_ms(found.measured_ns),
        unprofiled_step_ms=_ms(found.base_ns),
        predicted_step_ms=_ms(found.predicted_ns),
        low_ms=_ms(found.low_ns),
        high_ms=_ms(found.high_ns),
        speedup=round(found.speedup, 3),
        speedup_low=round(found.base_ns / found.high_ns, 3),
        speedup_high=round(found.base_ns / found.low_ns, 3),
        limited_by=found.limited_by,
        limit_text=_LIMITS[found.limited_by],
        gpu_ms=_ms(found.gpu_ns),
        gpu_before_ms=_ms(found.base_gpu_ns),
        cpu_ms=_ms(found.host_ns),
        casts=round(found.casts),
        casts_ms=_ms(found.cast_ns),
        scaler_ms=_ms(found.scaler_ns),
        total_rows=len(ops),
        ops=ops,
    )


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / _MS, 4)


def _headline(found: Forecast) -> str:
    name = found.target.precision.upper()
    times = (
        f"{found.predicted_ns / _MS:.2f} ms a step ({found.low_ns / _MS:.2f} to {found.high_ns / _MS:.2f}), "
        f"{found.base_ns / _MS:.2f} ms now"
    )
    if abs(found.speedup - 1) < _SAME:
        change = "would change little"
    elif found.speedup > 1:
        change = f"would make the step {found.speedup:.2f} times as fast"
    else:
        change = f"would make the step {100 * (1 / found.speedup - 1):.0f} % longer"
    return f"{name} {change}: {times}; {_LIMITS[found.limited_by]}."
