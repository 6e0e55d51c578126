"""Tries remedies on a step of a training that runs in this process, such as a notebook's.

A remedy is switched on for a block of steps and off again, in the order baseline, remedy, remedy, baseline, as
`tb-dlprof try` does with processes. What is set up before a training starts (DataLoaders, optimizers, variables of the
environment) cannot be tried here.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tb_dlprof_plugin.model.trial_result import BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.trial.facts import TrialFacts
from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies
from tb_dlprof_plugin.trial.inside.observation import TrialObservation
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.inside.remedy import Changes, one_of_each_group
from tb_dlprof_plugin.trial.protocol import Checks
from tb_dlprof_plugin.trial.statistics import HARM, LOOKS, WORTH, Gain, gain, is_lost
from tb_dlprof_plugin.trial.verdict import OTHER_TRAININGS, compare

_CHECKED = 8
"""Steps whose losses and gradients are compared."""
_WARMUP = 4
"""Steps after each switch that are not timed: a remedy that is switched on is complete after the third."""
_BLOCK_S = 0.3
_FEWEST_STEPS, _MOST_STEPS = 2, 1000
_SHARE_OF_SET = 0.4
"""Of the budget, for sets."""


def try_step(
    step: Callable[[], object],
    *,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    remedies: Sequence[str] | None = None,
    budget_s: float = 60.0,
    precision_percent: float = 1.0,
) -> TrialResult:
    """Measure remedies on a step, and whether the training stays the same.

    Model and optimizer have the state that they had before, when it ends.

    Args:
        step: runs one step of the training, from the batch to the optimizer's step.
        model: that the step calls.
        optimizer: that it steps.
        remedies: their names; those that can be switched on in a running process where None.
        budget_s: seconds for all of it; the remedies that it is too short for are not measured.
        precision_percent: half of the interval at which the measurement of a remedy ends.

    Returns:
        The same as the JSON of `tb-dlprof try`, without a patch.

    Raises:
        ValueError: there is no remedy of a name.
        Exception: whatever the step raises without a remedy.
    """
    names = list(classes()) if remedies is None else list(remedies)
    unknown = [name for name in names if name not in classes()]
    if unknown:
        raise ValueError(f"there is no remedy {unknown[0]!r}")
    experiment = _Experiment(step, _TrainingState(model, optimizer), precision_percent)
    try:
        return experiment.run(names, remedies is None, time.monotonic() + budget_s)
    finally:
        experiment.state.restore()


class _TrainingState:
    """Parameters, buffers, gradients and the optimizer's state, to begin again with."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        self._optimizer, self.training = optimizer, model.training
        self._tensors = [(one, one.detach().clone()) for one in (*model.parameters(), *model.buffers())]
        self._gradients = [(one, None if one.grad is None else one.grad.clone()) for one in model.parameters()]
        self._of_optimizer = None if optimizer is None else copy.deepcopy(optimizer.state_dict())
        self._random = torch.get_rng_state()

    def restore(self) -> None:
        """Set all back."""
        with torch.no_grad():
            for tensor, before in self._tensors:
                tensor.copy_(before)
        for parameter, gradient in self._gradients:
            parameter.grad = None if gradient is None else gradient.clone()
        if self._optimizer is not None and self._of_optimizer is not None:
            self._optimizer.load_state_dict(copy.deepcopy(self._of_optimizer))
        torch.set_rng_state(self._random)


class _Experiment:
    def __init__(self, step: Callable[[], object], state: _TrainingState, precision_percent: float) -> None:
        self.state = state
        self._step, self._precision = step, precision_percent
        self._steps = _FEWEST_STEPS
        self._baseline_s: list[float] = []

    def run(self, names: Sequence[str], only_fitting: bool, until: float) -> TrialResult:
        began = time.monotonic()
        self._warm_up()
        baseline, seeds, again = self._checks(None), self._checks(None, seed=1), self._checks(None)
        facts = TrialFacts(
            torch_version=tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit()),
            cuda=torch.cuda.is_initialized(),
            compute_capability=torch.cuda.get_device_capability() if torch.cuda.is_initialized() else None,
        )
        result = TrialResult(command=["try_step"], device=_device())
        possible = []
        for name in names:
            why = _why_not(name, facts)
            if why is None:
                possible.append(name)
            elif not only_fitting or classes()[name].in_running_process:
                result.rows.append(_row(name, not_tried=why))
        measured: list[TriedRemedy] = []
        single_until = until - (_SHARE_OF_SET if len(possible) > 1 else 0.0) * (until - time.monotonic())
        for left, name in zip(range(len(possible), 0, -1), possible, strict=True):
            share = time.monotonic() + max(single_until - time.monotonic(), 0.0) / left
            if time.monotonic() > single_until:
                measured.append(_row(name, not_tried="The time was up."))
                continue
            measured.append(self._try((name,), share, baseline, [seeds], again))
        measured.sort(key=lambda row: -math.inf if row.gain_percent is None else row.gain_percent, reverse=True)
        result.rows = [*measured, *result.rows]
        result.best = self._best(measured, result, until, baseline, [seeds], again)
        result.baseline_ms = 1e3 * statistics.median(self._baseline_s) if self._baseline_s else None
        result.seconds = time.monotonic() - began
        return result

    def _best(
        self,
        rows: Sequence[TriedRemedy],
        result: TrialResult,
        until: float,
        baseline: Checks,
        seeds: Sequence[Checks],
        again: Checks,
    ) -> BestSet:
        """The best of the gains alone, or a set that is left where all that gains or costs little alone is put
        together, and what it does not need is left out again, as `trial.best_set` does with processes."""
        sound = [row for row in rows if row.gain_percent is not None and row.verdict not in OTHER_TRAININGS]
        gains = [row for row in sound if row.is_gain]
        if not gains:
            return BestSet()
        harmless = [row for row in sound if not row.is_gain and (row.gain_percent or 0.0) > HARM]
        chosen = _can_be_together([*gains, *harmless])
        best = gains[0]

        def together(names: Sequence[str], left: int) -> TriedRemedy | None:
            share = time.monotonic() + max(until - time.monotonic(), 0.0) / left
            row = self._try(tuple(names), share, baseline, seeds, again)
            return None if row.gain_percent is None or row.verdict in OTHER_TRAININGS else row

        whole = together(chosen, len(chosen) + 1) if len(chosen) > 1 else None
        if whole is None and len(gains) > 1:
            chosen = _can_be_together(gains)
            whole = together(chosen, len(chosen) + 1) if len(chosen) > 1 else None
        for left, name in zip(range(len(chosen), 0, -1), list(reversed(chosen)), strict=True):
            if whole is None or len(chosen) == 1 or time.monotonic() > until:
                break
            rest = [one for one in chosen if one != name]
            smaller = together(rest, left)
            if smaller is not None and not _is_less(smaller, whole):
                chosen, whole = rest, smaller
        if whole is not None and len(chosen) > 1:
            result.sets.append(whole)
            if whole.is_gain and (whole.gain_percent or 0.0) > (best.gain_percent or 0.0):
                best = whole
        names = best.remedy.split("+")
        return BestSet(
            remedies=names,
            gain_percent=best.gain_percent,
            low_percent=best.low_percent,
            high_percent=best.high_percent,
            verdict=best.verdict,
            verdict_text=best.verdict_text,
            by_hand=names,
        )

    def _try(
        self, names: tuple[str, ...], until: float, baseline: Checks, seeds: Sequence[Checks], again: Checks
    ) -> TriedRemedy:
        row = _row("+".join(names))
        applied = AppliedRemedies(names)
        began = time.monotonic()
        try:
            checks = self._checks(applied)
            row.start_s = time.monotonic() - began
            nothing = applied.no_effect()
            if len(nothing) == len(names):
                row.no_effect = " ".join(nothing.values())
                return row
            found = self._quads(applied, until)
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}".splitlines()[0]
            return row
        finally:
            applied.stop()
            self.state.restore()
        kinds = {classes()[name].changes for name in names}
        same = compare(baseline, checks, seeds, repeated=again, random=Changes.RANDOM in kinds)
        row.verdict, row.verdict_text = same.verdict, same.detail
        row.gain_percent, row.is_gain, row.quads = found.percent, found.certain, found.quads
        if math.isfinite(found.low) and math.isfinite(found.high):
            row.low_percent, row.high_percent = found.low, found.high
        row.before_ms = 1e3 * statistics.median(self._baseline_s)
        row.after_ms = row.before_ms * (1 - found.percent / 100)
        return row

    def _quads(self, applied: AppliedRemedies, until: float) -> Gain:
        ratios: list[float] = []
        while True:
            began = time.monotonic()
            first = self._block(None)
            middle = (self._block(applied) + self._block(applied)) / 2
            outer = (first + self._block(None)) / 2
            self._baseline_s.append(outer)
            ratios.append(math.log(middle / outer))
            found = gain(ratios)
            narrow = found.quads in LOOKS and found.half_width <= self._precision
            if is_lost(found) or narrow or found.quads >= LOOKS[-1] or 2 * time.monotonic() - began > until:
                return found

    def _warm_up(self) -> None:
        for _ in range(_WARMUP):
            self._step()
        took = self._timed(None, _FEWEST_STEPS)
        self._steps = min(max(math.ceil(_BLOCK_S / max(took, 1e-6)), _FEWEST_STEPS), _MOST_STEPS)

    def _block(self, applied: AppliedRemedies | None) -> float:
        """Seconds per step, with the remedies on during the block only."""
        if applied is None:
            return self._timed(None, self._steps)
        applied.start()
        try:
            return self._timed(applied, self._steps)
        finally:
            applied.stop()

    def _timed(self, applied: AppliedRemedies | None, steps: int) -> float:
        for number in range(_WARMUP):
            self._step()
            if applied is not None:
                applied.step_ended(number)
        _wait()
        began = time.perf_counter()
        for number in range(_WARMUP, _WARMUP + steps):
            self._step()
            if applied is not None:
                applied.step_ended(number)
        _wait()
        return (time.perf_counter() - began) / steps

    def _checks(self, applied: AppliedRemedies | None, seed: int = 0) -> Checks:
        """The first steps from the state that the training had."""
        self.state.restore()
        torch.manual_seed(seed)
        observation = TrialObservation()
        try:
            if applied is not None:
                applied.start()
            for number in range(_CHECKED):
                self._step()
                observation.step()
                if applied is not None:
                    applied.step_ended(number)
        finally:
            if applied is not None:
                applied.stop()
            observation.stop()
        return observation.checks()


def _can_be_together(rows: Sequence[TriedRemedy]) -> list[str]:
    """Names of remedies that can be applied together."""
    return [remedy.name for remedy in one_of_each_group(make(row.remedy) for row in rows)]


def _is_less(smaller: TriedRemedy, whole: TriedRemedy) -> bool:
    """Whether a set certainly gains less than the one that it is a part of."""
    gain = whole.gain_percent or 0.0
    highest = math.inf if smaller.high_percent is None else smaller.high_percent
    return (smaller.gain_percent or 0.0) < gain - WORTH and highest < gain


def _why_not(name: str, facts: TrialFacts) -> str | None:
    if not classes()[name].in_running_process:
        return "It belongs to the start of a training: try it with `tb-dlprof try`."
    return make(name).why_not(facts)


def _row(remedy: str, **values: Any) -> TriedRemedy:
    names = remedy.split("+")
    made = [make(name) for name in names]
    return TriedRemedy(
        remedy=remedy,
        title=" and ".join(one.title for one in made),
        changes=" ".join(one.may_change for one in made),
        code="".join(one.code() for one in made),
        **values,
    )


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_initialized() else "CPU"


def _wait() -> None:
    if torch.cuda.is_initialized():
        # Not torch.cuda.synchronize, which a remedy replaces.
        torch._C._cuda_synchronize()
