"""Compares a forecast with the run that it predicted: the step, the kernels, each op.

The forecast is made from the base alone, with the candidate's batch size and GPU where they differ. It is about the
step without the profiler (`simulation.estimate`); if the candidate's step is an estimate, the kernels are the better
check.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.comparison.differences import Comparison
from tb_dlprof_plugin.comparison.step_intervals import agree
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.metrics.run_setup import precision_of
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.planning import Forecast, OpForecast, Precision, forecast
from tb_dlprof_plugin.planning.candidates import forecasts
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate

Outcome = Literal["within", "shorter", "longer"]
"""Where the measured step lies: within the forecast's interval as far as both are known, below it, above it."""

_TF32 = ("tf32", "tf32-partly", "tf32-allowed")
"""Precision that was switched on, whether or not matrix work used it: kernels that stay in FP32 belong to the
result."""
_MATCHED_PERCENT = 90.0
"""Less of the base's GPU time than this with a counterpart is another model or another way to run it."""


class NotComparableError(VisibleMessage, ValueError):
    """The candidate is not the run that the forecast is about; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class OpCheck:
    """Kernel time per iteration (ns) of an op of the base without casts; ``measured_ns`` None: not in the candidate."""

    forecast: OpForecast
    measured_ns: float | None

    @property
    def error_percent(self) -> float | None:
        """How much longer than measured the forecast is; None where nothing was measured."""
        return 100 * (self.forecast.predicted_ns / self.measured_ns - 1) if self.measured_ns else None


@dataclass(frozen=True)
class ForecastCheck:
    """A forecast and what was measured, per step (ns).

    ``kernel_ns`` is all GPU time of the candidate, copies, casts and GradScaler included, as `Forecast.gpu_ns` is.
    """

    forecast: Forecast
    step: StepEstimate
    kernel_ns: float
    cast_ns: float
    scaler_ns: float
    ops: list[OpCheck]

    @property
    def outcome(self) -> Outcome:
        """Where the measured step lies."""
        made, step = self.forecast, self.step
        if agree((made.low_ns, made.predicted_ns, made.high_ns), (step.low_ns, step.ns, step.high_ns)):
            return "within"
        return "shorter" if step.ns < made.predicted_ns else "longer"

    @property
    def error_percent(self) -> float:
        """How much longer than measured the forecast step is."""
        return 100 * (self.forecast.predicted_ns / self.step.ns - 1)


def forecast_precision(base: ProfileView, candidate: ProfileView) -> Precision | None:
    """The precision that the candidate went to, where a forecast is about that: from FP32 to TF32 or by autocast."""
    if precision_mode(base).precision != "fp32":
        return None
    if precision_of(candidate) in _TF32 and precision_of(base) not in _TF32:
        return "tf32"
    mode = precision_mode(candidate)
    if mode.means != "autocast":
        return None
    return "fp16" if mode.precision == "fp16" else "bf16" if mode.precision == "bf16" else None


def check_forecast(
    comparison: Comparison, base: ProfileView, candidate: ProfileView, selection: Selection
) -> ForecastCheck | None:
    """Compare the forecast from the base with the candidate; None if the forecast does not apply to the candidate.

    Args:
        comparison: of the two.
        base: the FP32 run.
        candidate: the run in another precision.
        selection: iterations of the candidate.

    Raises:
        ForecastError: the base allows no forecast.
        NotComparableError: the candidate differs in more than a forecast takes into account.
    """
    precision = forecast_precision(base, candidate)
    if precision is None:
        return None
    found = _forecast(comparison, base, candidate, precision)
    matched = comparison.shares[0].matched_percent
    if matched is None or matched < _MATCHED_PERCENT:
        raise NotComparableError(
            f"only {matched or 0:.0f} % of the base's GPU time has a counterpart in the candidate: the runs differ in "
            "more than the precision."
        )
    split = time_split(candidate, selection)
    return ForecastCheck(
        forecast=found,
        step=step_estimate(candidate, selection),
        kernel_ns=(split.kernel_ns + split.memory_ns) / selection.count,
        cast_ns=comparison.shares[1].casts_ns,
        scaler_ns=comparison.shares[1].scaler_ns,
        ops=_ops(comparison, base, found),
    )


def _forecast(comparison: Comparison, base: ProfileView, candidate: ProfileView, precision: Precision) -> Forecast:
    batches, before, after = comparison.batches, gpu_name(base), gpu_name(candidate)
    other_gpu = after if after != before else None
    if batches is not None and batches.differ and not batches.recorded:
        raise NotComparableError("the batch sizes differ and were not recorded; pass batch_size= to profile.")
    other_batch = batches.b if batches is not None and batches.differ else None
    if other_gpu is None and other_batch is None:
        return forecasts(base).of(precision)
    return forecast(base, precision, other_batch, other_gpu)


def _ops(comparison: Comparison, base: ProfileView, found: Forecast) -> list[OpCheck]:
    """Ops by falling time in the base; the rows of the comparison that are parts of one op are added up."""
    measured: dict[str, float] = defaultdict(float)
    for pair in comparison.pairs:
        if pair.a is not None and pair.b is not None:
            measured[pair.a.id] += pair.b.time_ns - pair.b.cast_ns
    ids = base.groups.ids
    return [OpCheck(op, measured.get(ids[op.group])) for op in found.ops]
