"""The precision of a run in words, with its evidence, and the panel of numeric health."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.numeric_health import NumericHealth, numeric_health
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.metrics.precision_mode import (
    Disagreement,
    PrecisionMode,
    named_otherwise,
    precision_mode,
    precision_name,
)
from tb_dlprof_plugin.model.frameworks import PYTORCH
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.columns import Definition
from tb_dlprof_plugin.pages.common import Slice, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, op_name


class PrecisionRegion(msgspec.Struct, frozen=True):
    """An op of the model that ran in another precision than the run; percent of the time of all matrix work."""

    name: str
    precision: str
    time_ns: int
    percent: float


class PrecisionSummary(msgspec.Struct, frozen=True):
    """The precision of the whole recording.

    ``label`` is such as "AMP FP16 (autocast)", None for unknown. ``evidence`` lists what shows it, ``disagreements``
    contradicting settings. ``shares`` is the time of matrix work by precision: of kernels, or of CPU ops. ``regions``
    are those with most time of ``regions_total``.
    """

    label: str | None
    evidence: list[str]
    disagreements: list[str]
    shares: list[Slice]
    regions: list[PrecisionRegion]
    regions_total: int
    loss_scaling: Verdict


class LossScalePoint(msgspec.Struct, frozen=True):
    """The loss scale at the end of a cycle; ``step`` counts training steps since the profiler was started."""

    cycle: int
    step: int | None
    scale: float


class NumericHealthPanel(msgspec.Struct, frozen=True):
    """State of loss scaling; None is unknown.

    ``skipped_steps`` of ``checked_steps`` optimizer steps were skipped because a gradient was inf or NaN;
    ``skipped_iterations`` are their numbers as the training counts them. ``steps_since_change`` counts good steps since
    the scale last changed, at the end of the cycle.
    """

    headline: str
    whole_recording: bool
    checked_steps: Annotated[
        int | None,
        Definition(
            "checkedSteps",
            "Optimizer steps of the selected iterations before which a scaler looked for inf and NaN.",
        ),
    ]
    skipped_steps: Annotated[
        int | None,
        Definition(
            "skippedSteps",
            "Optimizer steps that were skipped because a gradient was inf or NaN, in the selected iterations.",
        ),
    ]
    skipped_iterations: list[int]
    loss_scale: Annotated[
        float | None,
        Definition("lossScale", "The factor on the loss when the recording's cycle ended."),
    ]
    steps_since_change: Annotated[
        int | None,
        Definition(
            "stepsSinceChange",
            "Steps in a row without a skip when the cycle ended; a dynamic scale grows after many of them.",
        ),
    ]
    loss_scales: list[LossScalePoint]


_SHOWN_REGIONS = 10
_UNKNOWN = "unknown"


def precision_summary(view: ProfileView, run: str = "") -> PrecisionSummary:
    """The precision of a profile; ``run`` is the name that TensorBoard shows it under."""
    mode, facts = precision_mode(view), view.profile.facts
    disagreements = [_disagreement(item, mode) for item in mode.disagreements]
    if not any(item.declared == "name" for item in mode.disagreements) and named_otherwise(run, mode):
        disagreements.append(_disagreement(Disagreement("name", run), mode))
    return PrecisionSummary(
        label=mode.label or None,
        evidence=_evidence(view, mode, facts),
        disagreements=disagreements,
        shares=[Slice(s.precision or _UNKNOWN, precision_name(s.precision), s.ns, s.percent) for s in mode.shares],
        regions=[
            PrecisionRegion(op_name(r.module, r.op_type), precision_name(r.precision), r.ns, r.percent)
            for r in mode.regions[:_SHOWN_REGIONS]
        ],
        regions_total=len(mode.regions),
        loss_scaling={True: "yes", False: "no", None: "unknown"}[mode.loss_scaling],  # type: ignore[arg-type]
    )


def numeric_health_panel(view: ProfileView, selection: Selection) -> NumericHealthPanel | None:
    """The panel over the selected iterations; None where nothing was scaled, checked or recorded."""
    health = numeric_health(view, selection)
    if not health.loss_scaling and health.rounds is None and not health.loss_scales:
        return None
    numbers = view.profile.iterations.number
    return NumericHealthPanel(
        headline=_headline(health),
        whole_recording=health.decided_on_device,
        checked_steps=health.rounds,
        skipped_steps=health.skipped,
        skipped_iterations=[int(numbers[index]) for index in health.skipped_iterations],
        loss_scale=health.scale,
        steps_since_change=health.steps_since_change,
        loss_scales=[LossScalePoint(s.cycle, s.step, s.scale) for s in health.loss_scales],
    )


def _evidence(view: ProfileView, mode: PrecisionMode, facts: RunFacts) -> list[str]:
    signals = mode.signals
    if not mode.shares:
        told = view.profile.source.framework == PYTORCH and time_split(view, view.selection()).tensor_cores_known
        return [
            "No matrix product, convolution or attention was recorded."
            if told
            else "Which kernels and ops compute matrix products is not known."
        ]
    found = [_shares(mode)]
    if not mode.label:
        found.append(
            "That is not enough: input types were not recorded, or the kernels' names do not show the precision."
        )
    if signals.wrapped_ops:
        found.append(f"autocast wrapped {signals.wrapped_ops:,} of {_count(signals.half_ops, 'forward matrix op')}.")
    if signals.cast_weights and mode.means not in ("autocast", "cast_model"):
        weights = _count(signals.half_weights, "weight shape")
        found.append(f"Tensors of {signals.cast_weights:,} of {weights} were cast from FP32 in the forward pass.")
    if signals.casts:
        casts = ", ".join(f"{number:,} to {precision_name(to)}" for to, number in signals.casts.items())
        found.append(f"Casts of FP32 tensors: {casts}.")
    if facts.parameter_dtypes:
        found.append(f"The parameters are {', '.join(facts.parameter_dtypes)}.")
    elif mode.means == "cast_model":
        found.append(f"The weights were not cast from FP32, so they are {precision_name(mode.precision)}.")
    if facts.apex_opt_level:
        found.append(f"Apex was initialized with opt_level {facts.apex_opt_level}.")
    for (source, target), launches in sorted(signals.apex.items()):
        where = (
            f"in {precision_name(source)}"
            if source == target
            else f"from {precision_name(source)} to {precision_name(target)}"
        )
        found.append(f"Apex' amp_C scaled tensors {where} in {_count(launches, 'launch')}.")
    if mode.means == "compiled":
        launches_of = _count(signals.compiled_kernels, "launch")
        found.append(f"{signals.casting_compiled_kernels:,} of {launches_of} of compiled kernels cast.")
    if mode.means == "fsdp":
        found.append(f"{parallel_settings(view).wrapper} casts the parameters that it gathers.")
    if signals.transformer_engine_ops or signals.transformer_engine_kernels:
        found.append(
            f"Transformer Engine: {_count(signals.transformer_engine_ops, 'op')}, "
            f"{_count(signals.transformer_engine_kernels, 'launch')} of its kernels."
        )
    if signals.scaled_products:
        found.append(f"{_count(signals.scaled_products, 'call')} of aten::_scaled_mm.")
    if mode.precision == "fp16" and mode.loss_scaling is not True:
        told = mode.loss_scaling is False
        found.append("The loss was not scaled." if told else "Whether the loss was scaled is unknown.")
    if signals.gradscaler_ops:
        found.append(f"{_count(signals.gradscaler_ops, 'call')} of GradScaler's ops.")
    return found


def _shares(mode: PrecisionMode) -> str:
    parts = [
        f"{_percent(share.percent)} {f'in {precision_name(share.precision)}' if share.precision else 'unknown'}"
        for share in mode.shares
    ]
    return f"Matrix time: {', '.join(parts)}."


def _disagreement(item: Disagreement, mode: PrecisionMode) -> str:
    ran = mode.label or precision_name(mode.precision)
    texts = {
        "autocast": f"autocast ({item.value or 'on'}) was on, yet no matrix op ran in FP16 or BF16.",
        "autocast_dtype": f"autocast was set to {item.value}, yet most work ran in {precision_name(mode.precision)}.",
        "autocast_off": "autocast was off where the model was called; it is on inside.",
        "parameters": f"The parameters are {item.value}, yet no matrix op ran in FP16 or BF16.",
        "apex": f"Apex was initialized with opt_level {item.value}, yet no matrix op ran in FP16.",
        "grad_scaler": "A GradScaler scales the loss, yet nothing ran in FP16: other precisions do not need it.",
        "transformer_engine": "Transformer Engine's modules ran, yet none of their products in FP8.",
        "tf32": "TF32 is allowed, yet no matrix op ran in it.",
        "name": f'The run is called "{item.value}", yet it ran in {ran}.',
    }
    return texts[item.declared]


def _headline(health: NumericHealth) -> str:
    if health.skipped is None:
        if health.decided_on_device:
            return "The optimizer decides on the device whether it skips a step; how often was not recorded."
        return "The loss is scaled; whether steps were skipped was not recorded."
    steps = _count(health.rounds or 0, "optimizer step")
    if not health.skipped:
        return f"None of {steps} was skipped: all gradients were finite."
    return (
        f"{health.skipped:,} of {steps} {'was' if health.skipped == 1 else 'were'} skipped: a gradient was inf or NaN."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's' if not noun.endswith('ch') else 'es'}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 else "below 1 %"
