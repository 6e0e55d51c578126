"""Forecasts of a run in another precision: one with its ops, or those of mixed precision side by side."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.advice.code_snippets import BF16, FP16, TF32
from tb_dlprof_plugin.advice.rules.precision import amp_not_used, tf32_off
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import OpText
from tb_dlprof_plugin.planning import Forecast, ForecastError, Precision, forecast
from tb_dlprof_plugin.planning.candidates import MIXED, forecasts
from tb_dlprof_plugin.planning.forecast_text import LIMITS, headline
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

_MS = 1e6
_REMEDIES: dict[Precision, tuple[str, str, str]] = {
    "tf32": ("TF32", "Allow TF32: FP32 tensors stay, products are rounded to 10 bits of mantissa.", TF32),
    "fp16": ("FP16 (autocast)", "Forward pass and loss under torch.autocast, the loss scaled by GradScaler.", FP16),
    "bf16": ("BF16 (autocast)", "Forward pass and loss under torch.autocast; BF16 needs no scaler.", BF16),
}
"""Label of each precision, what to change for it, and the code."""


class ForecastOp(msgspec.Struct, frozen=True):
    """Kernel time of one op per iteration, as measured and as forecast; ``casts_ms`` comes on top.

    ``precision`` is what its kernels would compute in, "" for an op that keeps its time.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=260)]
    direction: Annotated[Direction, Column("Pass", "pass", missing="–")]
    measured_ms: Annotated[float, Column("Now", "Kernel time per iteration, as recorded.")]
    predicted_ms: Annotated[
        float, Column("Forecast", "Kernel time per iteration in the new precision, its casts not counted.")
    ]
    speedup: Annotated[
        float | None,
        Column("Times as fast", "Kernel time now over the forecast, without casts.", missing="–", unit="ratio"),
    ]
    casts_ms: Annotated[float, Column("Casts", "forecastCasts", absent=("casts_ms", "0", "0.0"))]
    precision: Annotated[str, Column("Would run in", "forecastPrecision", choice=True, missing="as now")]
    module: str
    op_type: str


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
    limit_text: Annotated[
        str, Definition("forecastPace", "The bottleneck of the step: the GPU's kernels, or the CPU that launches them.")
    ]
    gpu_ms: Annotated[
        float,
        Definition(
            "forecastGpu",
            "The same, with the kernels' times in the other precision and with what autocast adds.",
        ),
    ]
    gpu_before_ms: Annotated[
        float,
        Definition("forecastGpuNow", "Summed time of the kernels, copies and sets that a recorded step launched."),
    ]
    cpu_ms: Annotated[
        float,
        Definition(
            "forecastCpu",
            "CPU time of a step without waits and without the profiler: no GPU can make the step shorter.",
        ),
    ]
    casts: int
    casts_ms: float
    scaler_ms: Annotated[
        float,
        Definition("forecastScaler", "Kernels that scale the loss, unscale the gradients and look for inf and NaN."),
    ]
    total_rows: int
    ops: list[ForecastOp]


class MixedPrecisionChoice(msgspec.Struct, frozen=True):
    """One precision that an FP32 run could use: what to change, and its forecast without the ops.

    Without a forecast, ``refusal`` gives the reason and ``forecast`` is None.
    """

    precision: str
    label: str
    change: str
    code: str
    refusal: str
    forecast: ForecastPage | None


class MixedPrecision(msgspec.Struct, frozen=True):
    """What mixed precision would gain, over all recorded iterations; ``choices`` are TF32, FP16, BF16."""

    choices: list[MixedPrecisionChoice]
    iterations: int


def forecast_page(
    view: ProfileView,
    ref: RunRef,
    precision: Annotated[
        Precision, Option("bf16 and fp16: autocast (fp16 with GradScaler); tf32: TF32 allowed; fp32: as recorded.")
    ],
    batch_size: Annotated[int | None, Option("Batch size; that of the run by default.")] = None,
    gpu: Annotated[str | None, Option("GPU, by the name that CUDA reports; that of the run by default.")] = None,
) -> ForecastPage:
    """The forecast of a run.

    Raises:
        ForecastError: there is none; the message gives the reason.
    """
    if batch_size is None and gpu is None and precision in MIXED:
        found = forecasts(view).of(precision)
    else:
        found = forecast(view, precision, batch_size, gpu)
    return _page(view, ref, found, _ops(view, found), batch_size)


def mixed_precision(view: ProfileView, ref: RunRef) -> MixedPrecision:
    """The forecasts of a run in all of `MIXED` side by side, without their ops."""
    return MixedPrecision([_choice(view, ref, precision) for precision in MIXED], len(view.profile.iterations))


def _choice(view: ProfileView, ref: RunRef, precision: Precision) -> MixedPrecisionChoice:
    label, change, code = _REMEDIES[precision]
    rule = tf32_off.RULE if precision == "tf32" else amp_not_used.RULE
    if remedy := rule.remedies.get(view.profile.source.framework):
        label, change, code = precision.upper(), remedy.change, remedy.code
    try:
        page = _page(view, ref, forecasts(view).of(precision), [])
    except ForecastError as error:
        return MixedPrecisionChoice(precision, label, change, code, str(error), None)
    return MixedPrecisionChoice(precision, label, change, code, "", page)


def _ops(view: ProfileView, found: Forecast) -> list[ForecastOp]:
    return [
        struct_from(
            ForecastOp,
            OpText(view, op.group),
            measured_ms=_ms(op.measured_ns),
            predicted_ms=_ms(op.predicted_ns),
            casts_ms=_ms(op.casts_ns),
            speedup=_ms(op.measured_ns) / _ms(op.predicted_ns) if _ms(op.predicted_ns) else None,
            precision=op.precision,
        )
        for op in found.ops
    ]


def _page(
    view: ProfileView, ref: RunRef, found: Forecast, ops: list[ForecastOp], batch_size: int | None = None
) -> ForecastPage:
    recorded = view.profile.facts.batch_size
    return ForecastPage(
        ref=ref,
        model=view.profile.facts.model or "",
        gpu=found.target.new_gpu,
        precision=found.target.precision,
        batch_size=batch_size or recorded,
        headline=headline(found),
        measured_step_ms=_ms(found.measured_ns),
        unprofiled_step_ms=_ms(found.base_ns),
        predicted_step_ms=_ms(found.predicted_ns),
        low_ms=_ms(found.low_ns),
        high_ms=_ms(found.high_ns),
        speedup=round(found.speedup, 3),
        speedup_low=round(found.speedup_interval[0], 3),
        speedup_high=round(found.speedup_interval[1], 3),
        limited_by=found.limited_by,
        limit_text=LIMITS[found.limited_by],
        gpu_ms=_ms(found.gpu_ns),
        gpu_before_ms=_ms(found.base_gpu_ns),
        cpu_ms=_ms(found.host_ns),
        casts=round(found.casts),
        casts_ms=_ms(found.cast_ns),
        scaler_ms=_ms(found.scaler_ns),
        total_rows=len(found.ops),
        ops=ops,
    )


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / _MS, 4)
