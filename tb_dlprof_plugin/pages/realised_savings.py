"""Predicted and measured savings on the Compare page: the forecast compared with the run, predicted savings with
measured ones."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.advice.realised_savings import RealisedSaving, realised_savings
from tb_dlprof_plugin.comparison import Comparison
from tb_dlprof_plugin.comparison.forecast_check import ForecastCheck, NotComparableError, check_forecast
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.formatting import duration, interval
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import OpText
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.planning.forecast_text import LIMITS
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_MS = 1e6
_OUTCOMES = {"within": "within the interval", "shorter": "shorter than forecast", "longer": "longer than forecast"}
_ESTIMATED = (
    "The candidate's step is estimated, {low} to {high}, because its recorded step of {recorded} includes the "
    "profiler's overhead. The kernels are measured: compare them as well."
)
_TIMED = "The candidate's step is {words}. The recorded one, {recorded}, includes the profiler's overhead."
_MOST_OPS = 200
_WORTH_TELLING = 1.05
"""A recorded step this many times as long as the timed one is explained."""


class ForecastCheckOp(msgspec.Struct, frozen=True):
    """Kernel time of one op of the base per iteration (ms), casts left out.

    ``measured_ms`` is that in the candidate, None if the op is missing there. ``error_percent`` is how much longer than
    measured the forecast is. ``precision`` is that of its kernels in the forecast, "" if unchanged.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=250)]
    module: str
    op_type: str
    direction: Annotated[Direction, Column("Pass", "pass", missing="–")]
    before_ms: Annotated[float, Column("Base", "Kernel time per iteration in the base.")]
    predicted_ms: Annotated[float, Column("Forecast", "Kernel time per iteration as forecast, without casts.")]
    measured_ms: Annotated[
        float | None,
        Column("Measured", "Kernel time per iteration in the candidate, without casts.", missing="not in run"),
    ]
    error_ms: Annotated[float | None, Column("Error", "promiseError", missing="–", signed=True, terminal=False)]
    error_percent: Annotated[float | None, Column("Error, %", "promiseError", missing="–")]
    precision: Annotated[
        str, Column("Forecast in", "forecastPrecision", choice=True, missing="as in base", terminal=False)
    ]


class ForecastCheckPart(msgspec.Struct, frozen=True):
    """One measure of the step: as forecast and as measured (ms), and the forecast's error."""

    key: str
    label: str
    predicted_ms: float
    measured_ms: float
    error_percent: float | None


class ForecastCheckPanel(msgspec.Struct, frozen=True):
    """The forecast from the base alone, compared with the candidate; times per step in ms.

    ``step_ms`` is the candidate's step without the profiler, ``step_low_ms`` to ``step_high_ms`` its interval;
    ``estimated`` is True if it was not measured. ``outcome`` is its position relative to the forecast, considering both
    intervals. ``ops`` are the first of ``total_rows``, by falling error.
    """

    precision: str
    headline: str
    outcome: Literal["within", "shorter", "longer"]
    outcome_text: str
    base_ms: float
    predicted_ms: float
    low_ms: float
    high_ms: float
    step_ms: float
    step_low_ms: float
    step_high_ms: float
    recorded_ms: float
    estimated: bool
    error_percent: float
    limited_by: str
    limit_text: str
    note: str
    parts: list[ForecastCheckPart]
    ops: list[ForecastCheckOp]
    total_rows: int


class RealisedSavingRow(msgspec.Struct, frozen=True):
    """A saving that a rule predicted for the base, and the measured one (ns per step).

    ``realised_low_ns`` to ``realised_high_ns`` is the 95 % interval from the two steps, None if unknown.
    """

    rule: str
    title: str
    change: str
    low_ns: int
    expected_ns: int
    high_ns: int
    realised_ns: int
    realised_low_ns: int | None
    realised_high_ns: int | None
    estimated: bool
    outcome: Literal["kept", "more", "less", "broken", "shared"]
    text: str


class PredictionCheck(msgspec.Struct, frozen=True):
    """``forecast`` is None if none applies to the two runs; if one applies but fails, ``refusal`` gives the reason."""

    forecast: ForecastCheckPanel | None
    refusal: str
    savings: list[RealisedSavingRow]


def prediction_check(
    comparison: Comparison, a: ProfileView, b: ProfileView, of_a: Selection, of_b: Selection
) -> PredictionCheck | None:
    """Compares the predictions for ``b`` from ``a`` alone with the measurements; None without a prediction."""
    refusal, panel = "", None
    try:
        found = check_forecast(comparison, a, b, of_b)
    except (ForecastError, NotComparableError) as error:
        refusal = str(error)
    else:
        panel = _panel(found, a) if found else None
    savings = [_saving(kept) for kept in realised_savings(comparison, a, b, of_a, of_b)]
    return PredictionCheck(panel, refusal, savings) if panel or refusal or savings else None


def _panel(found: ForecastCheck, base: ProfileView) -> ForecastCheckPanel:
    made, step = found.forecast, found.step
    parts = [
        ("kernels", "GPU work", made.gpu_ns, found.kernel_ns),
        ("casts", "of it casts", made.cast_ns, found.cast_ns),
        ("scaler", "of it GradScaler", made.scaler_ns, found.scaler_ns),
    ]
    note = ""
    if step.estimated:
        recorded, low, high = (duration(time) for time in (step.recorded_ns, step.low_ns, step.high_ns))
        note = _ESTIMATED.format(recorded=recorded, low=low, high=high)
    elif step.recorded_ns > _WORTH_TELLING * step.ns:
        note = _TIMED.format(words=step.words, recorded=duration(step.recorded_ns))
    return ForecastCheckPanel(
        precision=made.target.precision,
        headline=_headline(found),
        outcome=found.outcome,
        outcome_text=_OUTCOMES[found.outcome],
        base_ms=_ms(made.base_ns),
        predicted_ms=_ms(made.predicted_ns),
        low_ms=_ms(made.low_ns),
        high_ms=_ms(made.high_ns),
        step_ms=_ms(step.ns),
        step_low_ms=_ms(step.low_ns),
        step_high_ms=_ms(step.high_ns),
        recorded_ms=_ms(step.recorded_ns),
        estimated=step.estimated,
        error_percent=round(found.error_percent, 2),
        limited_by=made.limited_by,
        limit_text=LIMITS[made.limited_by],
        note=note,
        parts=[
            ForecastCheckPart(key, label, _ms(said), _ms(was), _error(said, was))
            for key, label, said, was in parts
            if key == "kernels" or said or was
        ],
        ops=_ops(found, base),
        total_rows=len(found.ops),
    )


def _headline(found: ForecastCheck) -> str:
    made, step = found.forecast, found.step
    measured = "without the profiler, as estimated" if step.estimated else "measured"
    error = abs(found.error_percent)
    size = "less than 1 %" if error < 1 else f"{error:.0f} %"
    return (
        f"From the base alone, {made.target.precision.upper()} was forecast at {duration(made.predicted_ns)} a step "
        f"({interval(made.low_ns, made.high_ns, duration)}); {duration(step.ns)} {measured}: "
        f"{_OUTCOMES[found.outcome]}; the forecast is {size} too {'long' if found.error_percent >= 0 else 'short'}."
    )


def _ops(found: ForecastCheck, base: ProfileView) -> list[ForecastCheckOp]:
    """As many as fit into a response, by falling error."""
    rows = []
    for op in found.ops:
        said = op.forecast
        rows.append(
            struct_from(
                ForecastCheckOp,
                OpText(base, said.group),
                before_ms=_ms(said.measured_ns),
                predicted_ms=_ms(said.predicted_ns),
                measured_ms=None if op.measured_ns is None else _ms(op.measured_ns),
                error_ms=None if op.measured_ns is None else _ms(said.predicted_ns - op.measured_ns),
                error_percent=None if op.error_percent is None else round(op.error_percent, 2),
                precision=said.precision,
            )
        )
    rows.sort(key=lambda row: -abs(row.error_ms or 0))
    return rows[:_MOST_OPS]


def _saving(kept: RealisedSaving) -> RealisedSavingRow:
    return struct_from(
        RealisedSavingRow,
        kept,
        kept.finding,
        kept.saving,
        realised_ns=round(kept.realised_ns),
        realised_low_ns=None if kept.realised_low_ns is None else round(kept.realised_low_ns),
        realised_high_ns=None if kept.realised_high_ns is None else round(kept.realised_high_ns),
        text=_text(kept),
    )


def _text(kept: RealisedSaving) -> str:
    """The outcome of the saving, in one to three sentences."""
    realised = duration(abs(kept.realised_ns))
    said = {
        "kept": f"Measured: {realised} saved, as predicted.",
        "more": f"Measured: {realised} saved, more than predicted.",
        "less": f"Measured: {realised} saved, less than predicted.",
        "broken": f"Measured: nothing saved, the step got {realised} longer.",
        "shared": "Several of the advised changes were applied at once: their savings cannot be separated. "
        + (f"Together they saved {realised}." if kept.realised_ns > 0 else f"Together the step got {realised} longer."),
    }[kept.outcome]
    if kept.outcome == "kept" and kept.realised_ns <= 0:
        said = f"Measured: the step got {realised} longer, which the intervals of prediction and measurement allow."
    if kept.realised_low_ns is not None and kept.realised_high_ns is not None:
        how = ", with a step that is estimated" if kept.estimated else ""
        low, high = signed_duration(kept.realised_low_ns), signed_duration(kept.realised_high_ns)
        where = f"is {low}, to three digits" if low == high else f"lies between {low} and {high}"
        said += f" The saving {where} (95 %{how})."
    if "FP16" in kept.change and "bfloat16" in kept.finding.code:
        said += " It was predicted for BF16."
    if kept.also:
        said += f" The runs also differ in: {', '.join(kept.also)}."
    return said


def signed_duration(value_ns: float) -> str:
    """A saving, with a minus sign where the step got longer."""
    return f"−{duration(-value_ns)}" if value_ns < 0 else duration(value_ns)


def _error(said: float, was: float) -> float | None:
    return round(100 * (said / was - 1), 2) if was else None


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / _MS, 4)
