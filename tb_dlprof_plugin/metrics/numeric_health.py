"""Numeric health of a mixed-precision training: loss scale, skipped steps, non-finite gradients.

The trace shows skipped steps: a scaler that finds inf or NaN in the scaled gradients does not call the optimizer.
GradScaler ends each round with ``aten::_amp_update_scale_``; a round without the ``Optimizer.step`` of the others was
skipped. Apex unscales in a kernel of amp_C and replaces ``optimizer.step`` for that one call (apex/amp/handle.py,
``skip_step``). Fused optimizers are always called and decide on the device: only the hook's facts show it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.precision_signals import apex_conversion
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.model.run_facts import LossScale
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_UPDATE, _UNSCALE = "aten::_amp_update_scale_", "aten::_amp_foreach_non_finite_check_and_unscale_"
_ZERO_GRAD = "Optimizer.zero_grad#"
_COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction")
_FUSED = "aten::_fused_"


@dataclass(frozen=True, slots=True)
class NumericHealth:
    """Numbers of the loss scaling, None where unknown.

    Attributes:
        loss_scaling: whether the loss was scaled.
        rounds: checks of the gradients in the selected iterations, each followed by an optimizer step or a skipped one.
        skipped: optimizer steps that were skipped in them, because a gradient was inf or NaN.
        skipped_iterations: indices of the iterations in which that happened.
        decided_on_device: whether skipped steps leave no sign in the trace. ``rounds`` and ``skipped`` then are of the
            whole recording.
        scale: loss scale at the end of the cycle.
        steps_since_change: steps since the scale last changed, at the end of the cycle.
        loss_scales: a row per cycle so far.
    """

    loss_scaling: bool | None
    rounds: int | None
    skipped: int | None
    skipped_iterations: tuple[int, ...]
    decided_on_device: bool
    scale: float | None
    steps_since_change: int | None
    loss_scales: tuple[LossScale, ...]


@per_selection
def numeric_health(view: ProfileView, selection: Selection) -> NumericHealth:
    """The loss scaling in the selected iterations. Without a scaler gradients are not checked: ``skipped`` is
    unknown."""
    facts = view.profile.facts
    recorded = _Recorded(view)
    on_device = recorded.fused
    rounds: int | None = None
    skipped: int | None = None
    where: tuple[int, ...] = ()
    if on_device:
        rounds, skipped = _on_device(view, recorded)
    elif len(recorded.rounds):
        inside = (recorded.iteration >= selection.first) & (recorded.iteration <= selection.last)
        rounds = int(inside.sum())
        if recorded.skipped is not None:
            skipped = int(recorded.skipped[inside].sum())
            where = tuple(np.unique(recorded.iteration[inside & (recorded.skipped > 0)]).tolist())
    return NumericHealth(
        loss_scaling=precision_mode(view).loss_scaling,
        rounds=rounds,
        skipped=skipped,
        skipped_iterations=where,
        decided_on_device=on_device,
        scale=facts.grad_scaler_scale,
        steps_since_change=facts.grad_scaler_growth_tracker,
        loss_scales=tuple(facts.loss_scales),
    )


class _Recorded:
    """The scaler's rounds of a recording: when each ended, its iteration, and the optimizer steps that it lacks.

    ``skipped`` is None where the trace does not show optimizer steps.
    """

    def __init__(self, view: ProfileView) -> None:
        profile = view.profile
        calls, strings = profile.calls, profile.strings
        names = [strings[i] for i in profile.ops.name.tolist()]

        def starts(*prefixes: str) -> Ints:
            wanted = np.array([name.startswith(prefixes) for name in names], dtype=np.bool_)
            return np.sort(calls.start_ns[wanted[calls.op]])

        steps = starts(OPTIMIZER_STEP)
        self.rounds = starts(_UPDATE)
        unscales = starts(_UNSCALE)
        if not len(self.rounds):
            unscales = _apex_unscales(view)
            self.rounds = _last_of_iterations(view, unscales)
        self.fused = bool(len(self.rounds) and len(starts(_FUSED)))
        self.iteration = view.iteration_at(self.rounds)
        self.skipped: Ints | None = None
        # A compiled step leaves no annotation either: their absence alone does not say that all were skipped.
        if len(steps) or (len(starts(_ZERO_GRAD)) and not len(starts(*_COMPILED))):
            self.skipped = _missing_steps(self.rounds, unscales, steps)


def _missing_steps(rounds: Ints, unscales: Ints, steps: Ints) -> Ints:
    """Per round the optimizer steps that it lacks.

    A round with as many checks of gradients as another has as many optimizers, and at least one. Steps belong to the
    round that ends with GradScaler's update; Apex unscales before the step, so they follow there.
    """
    before = bool(len(steps) and len(rounds)) and _follows(rounds, unscales)
    edge = np.searchsorted(rounds, steps, side="left") if not before else np.searchsorted(rounds, steps, "right") - 1
    taken = np.bincount(edge[(edge >= 0) & (edge < len(rounds))], minlength=len(rounds))
    checks = np.bincount(
        np.minimum(np.searchsorted(rounds, unscales, side="left"), max(0, len(rounds) - 1)), minlength=len(rounds)
    )
    most: Counter[int] = Counter()
    for check, step in zip(checks.tolist(), taken.tolist(), strict=True):
        most[check] = max(most[check], step, 1)
    # A first round without a check began before the recording: its step may have, too.
    expected: Ints = np.array([most[check] if check else 0 for check in checks.tolist()], dtype=np.int64)
    missing: Ints = np.maximum(expected - taken, 0)
    return missing


def _follows(rounds: Ints, unscales: Ints) -> bool:
    """Whether rounds are marked by the unscaling itself, as Apex' are."""
    return set(rounds.tolist()) <= set(unscales.tolist())


def _apex_unscales(view: ProfileView) -> Ints:
    """Start of each call that launched a kernel of Apex to unscale: not in the optimizer, nor from masters to FP16."""
    profile = view.profile
    calls, launches, strings = profile.calls, profile.launches, profile.strings
    converted = [apex_conversion(strings[i]) for i in profile.kernels.name.tolist()]
    unscale = np.array([pair not in (None, ("fp32", "fp16")) for pair in converted], dtype=np.bool_)
    if not unscale.any():
        return np.zeros(0, dtype=np.int64)
    call = launches.call[unscale[launches.kernel] & (launches.call >= 0)]
    call = call[profile.ops.role[calls.op[call]] != Role.OPTIMIZER]
    return np.sort(calls.start_ns[call])


def _last_of_iterations(view: ProfileView, times: Ints) -> Ints:
    iteration = view.iteration_at(times)
    last = np.append(np.diff(iteration) != 0, True)[: len(times)]
    return times[last & (iteration >= 0)]


def _on_device(view: ProfileView, recorded: _Recorded) -> tuple[int, int | None]:
    """Rounds of the recording, and the steps that the device skipped in them, from the hook's facts.

    Without that, a scaler that has counted at least as many good steps as were recorded has skipped none of them.
    """
    facts, rounds = view.profile.facts, len(recorded.rounds)
    if facts.device_skipped_steps is not None:
        return rounds, facts.device_skipped_steps
    good = facts.grad_scaler_growth_tracker
    return rounds, 0 if good is not None and good >= rounds else None
