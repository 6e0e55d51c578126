"""Run table: the baseline of each run, its speedup, and the settings that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tb_dlprof_plugin.comparison.step_intervals import TimedStep, ratio_interval
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.metrics.run_setup import RunSetup
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower, change_of

Measured = Literal["step_time", "samples_per_second"]

FACTS: dict[str, str] = {
    "model": "model",
    "precision": "precision",
    "batch_size": "batch size",
    "workers": "workers",
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "processes": "number of processes",
    "compiled": "torch.compile",
    "channels_last": "channels last",
    "cudnn_benchmark": "cudnn.benchmark",
    "optimizer": "optimizer",
    "torch": "torch version",
}
"""The facts that distinguish runs, with their names in a sentence."""

_BASES = ("fp32", "tf32-allowed", "tf32-partly", "tf32")
_AMP = ("amp-fp16", "amp-bf16")
_HALF = ("fp16", "bf16")
_STEP_TIME: Measured = "step_time"
_SAMPLES: Measured = "samples_per_second"

Fact = str | int | bool | tuple[str | int | None, ...] | None
"""A model is its class and its number of parameters."""


class NamedRun(msgspec.Struct, frozen=True):
    """A run with a unique name."""

    name: str
    figures: RunFigures


class Speedup(msgspec.Struct, frozen=True):
    """How many times as fast a run is as its base, above 1 for faster, with the interval of 95 % around it.

    ``of`` names the quantity: steps without the profiler, or samples per second if the batch sizes differ. The interval
    follows from the uncertainty of both steps (`steps.ratio_interval`); it is None where a step is the recorded one of
    a single iteration.
    """

    ratio: float
    low: float | None
    high: float | None
    of: Measured
    change: FasterOrSlower


class RunWithBase(msgspec.Struct, frozen=True):
    """A run and its base; ``base`` is None if there is none, with the reason in ``why``. The base of a base is
    itself."""

    run: NamedRun
    base: NamedRun | None
    why: str
    differs: list[str]
    speedup: Speedup | None


class BeforeAfter(msgspec.Struct, frozen=True):
    """One model at one batch size on one GPU: its base and its fastest run with mixed precision.

    ``differs`` are the facts besides the precision in which they differ. ``best`` is the fastest run that differs from
    the base in the precision alone, where it is faster by more than the noise, else the base. ``tried`` are the
    precisions of all its runs.
    """

    before: NamedRun | None
    after: NamedRun | None
    differs: list[str]
    speedup: Speedup | None
    best: NamedRun
    best_speedup: Speedup | None
    tried: frozenset[str]


def fact_of(setup: RunSetup, fact: str) -> Fact:
    """A fact of `FACTS`; None where it was not recorded. A model is its class and its number of parameters."""
    if fact == "model":
        return None if setup.model is None else (setup.model, setup.parameters)
    value: Fact = getattr(setup, fact)
    return value


def differing_facts(a: RunSetup, b: RunSetup) -> list[str]:
    """The facts in which two runs differ; one that only one of them recorded does not count."""
    pairs = ((fact, fact_of(a, fact), fact_of(b, fact)) for fact in FACTS)
    return [fact for fact, left, right in pairs if left is not None and right is not None and left != right]


def against_base(runs: Sequence[NamedRun], base: str | None = None) -> list[RunWithBase]:
    """Each run with its base, in the order of ``runs``.

    Args:
        runs: with different names.
        base: name of the base of all runs. By default it is for each run the FP32 run (else the TF32 run)
            of the same model and batch size on the same GPU, the eager one and the earliest of several.

    Raises:
        KeyError: there is no run of that name.
    """
    if base is not None:
        chosen = next((run for run in runs if run.name == base), None)
        if chosen is None:
            raise KeyError(base)
        return [_against(run, chosen) for run in runs]
    bases = {key: _base_of(members) for key, members in _by_model(runs).items()}
    return [
        _against(run, bases[key])
        if (key := _model_key(run)) is not None
        else _no_base(run, "its model was not recorded")
        for run in runs
    ]


def before_and_after(runs: Sequence[NamedRun]) -> list[BeforeAfter]:
    """Each model with its base and its fastest run with mixed precision; models in the order of ``runs``.

    Where no run used autocast, one with parameters in half precision takes its place. Runs that differ from the base in
    the precision alone go first.
    """
    result = []
    for members in _by_model(runs).values():
        before, after = _base_of(members), None
        for names in (_AMP, _HALF):
            found = [run for run in members if run.figures.setup.precision in names]
            if found and after is None:
                after = min(found, key=lambda run: (len(_besides_precision(before, run)), run.figures.step.ns))
        if before is None and after is None:
            continue
        gained = speedup(before.figures, after.figures) if before and after else None
        best, best_gain = _best(before, after, members)
        tried = frozenset(run.figures.setup.precision or "" for run in members)
        result.append(BeforeAfter(before, after, _besides_precision(before, after), gained, best, best_gain, tried))
    return result


def speedup(base: RunFigures, run: RunFigures) -> Speedup | None:
    """How many times as fast ``run`` is; None where there is no step to compare."""
    if not (base.step.is_step and run.step.is_step):
        return None
    scale, of = 1.0, _STEP_TIME
    before, after = base.setup.batch_size, run.setup.batch_size
    if before and after and before != after:
        scale, of = after / before, _SAMPLES
    gained = scale * base.step.ns / run.step.ns
    interval = ratio_interval(TimedStep(base.step, base.iteration_ns), TimedStep(run.step, run.iteration_ns))
    if interval is None:
        return Speedup(gained, None, None, of, "unknown")
    low, high = scale * interval[0], scale * interval[1]
    return Speedup(gained, low, high, of, change_of((low, high)))


def _against(run: NamedRun, base: NamedRun | None) -> RunWithBase:
    if base is None:
        return _no_base(run, "no run in FP32 or TF32 has its model, batch size and GPU")
    if run.name == base.name:
        return RunWithBase(run, base, "", [], None)
    facts = differing_facts(base.figures.setup, run.figures.setup)
    return RunWithBase(run, base, "", facts, speedup(base.figures, run.figures))


def _no_base(run: NamedRun, why: str) -> RunWithBase:
    return RunWithBase(run, None, why, [], None)


def _base_of(members: Sequence[NamedRun]) -> NamedRun | None:
    fitting = [run for run in members if run.figures.setup.precision in _BASES]
    return min(fitting, key=_base_rank, default=None)


def _base_rank(run: NamedRun) -> tuple[int, bool, int, str]:
    setup = run.figures.setup
    # The eager run first, to show the gain of compiling.
    return (_BASES.index(setup.precision or ""), bool(setup.compiled), run.figures.created_unix_ns, run.name)


def _by_model(runs: Sequence[NamedRun]) -> dict[tuple[Fact, ...], list[NamedRun]]:
    result: dict[tuple[Fact, ...], list[NamedRun]] = {}
    for run in runs:
        key = _model_key(run)
        if key is not None:
            result.setdefault(key, []).append(run)
    return result


def _model_key(run: NamedRun) -> tuple[Fact, ...] | None:
    setup = run.figures.setup
    if setup.model is None:
        return None
    return tuple(fact_of(setup, fact) for fact in ("model", "batch_size", "gpu"))


def _best(
    before: NamedRun | None, after: NamedRun | None, members: Sequence[NamedRun]
) -> tuple[NamedRun, Speedup | None]:
    if before is None:
        assert after is not None
        return after, None
    for run in sorted(members, key=lambda run: run.figures.step.ns):
        gained = speedup(before.figures, run.figures)
        if not _besides_precision(before, run) and gained is not None and gained.change == "faster":
            return run, gained
    return before, None


def _besides_precision(before: NamedRun | None, after: NamedRun | None) -> list[str]:
    if before is None or after is None:
        return []
    return [fact for fact in differing_facts(before.figures.setup, after.figures.setup) if fact != "precision"]
