"""How often a slow-down is found on a machine, from runs of a step against itself.

Each slow-down is put into the ratios of these runs, and the verdict is reached as in a test: the same looks, the same
second pair of processes. So what the machine does to rounds and to processes is in it, as far as the runs show it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from tb_dlprof_plugin.model.regression import Regression
from tb_dlprof_plugin.pytest_plugin.judging import decided, verdict_of_pairs
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS

FOUND = 80.0
"""Percent of runs in which a slow-down is found that counts as detectable."""
SLOWDOWNS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
_FINEST, _LARGEST = 0.1, 100.0


class Detected(msgspec.Struct, frozen=True):
    """How often a slow-down of so many percent gets each verdict, in percent of tests."""

    slowdown_percent: float
    slower_percent: float
    cannot_say_percent: float
    not_slower_percent: float


class Power(msgspec.Struct, frozen=True):
    """What a machine can detect of a step.

    Attributes:
        test: its node id.
        device: the GPU's name, or the CPU's.
        step_ms: the step.
        runs: of the step against itself.
        seconds: of the test, for a pair of processes.
        limit_percent: of the test.
        round_percent: standard deviation of a round within a run.
        processes_percent: of two processes of the same code, beyond what their rounds explain.
        smallest_percent: the smallest slow-down found in `FOUND` percent of tests; None: not even double the time.
        slowdowns: how often each is found.
    """

    test: str
    device: str
    step_ms: float
    runs: int
    seconds: float
    limit_percent: float
    round_percent: float
    processes_percent: float
    smallest_percent: float | None
    slowdowns: list[Detected]


def power_of(measured: dict[str, Any], limit_percent: float | None = None) -> Power:
    """What the runs of a step against itself show.

    Args:
        measured: of `--dlprof-json` after `--dlprof-power`, one of its steps.
        limit_percent: another limit than the test's.

    Raises:
        ValueError: fewer than two runs, or too few rounds in one.
    """
    runs = measured["log_ratios"]
    if len(runs) < 2:
        raise ValueError("two runs are needed: one is a pair of processes, and pairs differ")
    if (fewest := min(map(len, runs))) < LEAST_QUADS:
        raise ValueError(f"there was time for {fewest} of {LEAST_QUADS} rounds; give the test more seconds")
    limit = measured["limit_percent"] if limit_percent is None else limit_percent
    within = statistics.fmean(statistics.variance(run) for run in runs)
    means = statistics.variance([statistics.fmean(run) for run in runs])
    rounds = statistics.fmean(len(run) for run in runs)
    return Power(
        test=measured["test"],
        device=measured["device"],
        step_ms=measured["step_ms"],
        runs=len(runs),
        seconds=measured["seconds"],
        limit_percent=limit,
        round_percent=100 * math.sqrt(within),
        processes_percent=100 * math.sqrt(max(0.0, means - within / rounds)),
        smallest_percent=smallest(runs, limit),
        slowdowns=[detected(runs, one, limit) for one in SLOWDOWNS],
    )


def detected(runs: Sequence[Sequence[float]], slowdown_percent: float, limit_percent: float) -> Detected:
    """The verdicts on a slow-down, with neighbouring runs, in both orders, as a test's first and second pair of
    processes: these follow each other, and a machine is busier at one time than at another.

    Args:
        runs: log ratios of rounds, of each run of the step against itself, in their order; at least two runs.
        slowdown_percent: that is put in.
        limit_percent: of the test.
    """
    shift = math.log1p(slowdown_percent / 100)
    # A test that does not call its first pair slower takes no second one.
    taken = [_rounds(run, shift, limit_percent) for run in runs]
    found = [_verdict(*pair, limit_percent) for one, other in pairwise(taken) for pair in ((one, other), (other, one))]
    shares = (100 * found.count(kind) / len(found) for kind in ("slower", "cannot_say", "not_slower"))
    return Detected(slowdown_percent, *shares)


def smallest(runs: Sequence[Sequence[float]], limit_percent: float) -> float | None:
    """The smallest slow-down in percent, to a tenth, that is found in `FOUND` percent of tests; None where not even
    double the time is."""
    few, many = 0, round(_LARGEST / _FINEST)
    if detected(runs, many * _FINEST, limit_percent).slower_percent < FOUND:
        return None
    while many - few > 1:
        middle = (few + many) // 2
        if detected(runs, middle * _FINEST, limit_percent).slower_percent < FOUND:
            few = middle
        else:
            many = middle
    return round(many * _FINEST, 1)


def _verdict(first: Sequence[float], second: Sequence[float], limit_percent: float) -> Regression:
    pairs = iter((first, second))
    return verdict_of_pairs(lambda: next(pairs), limit_percent)[0].verdict


def _rounds(run: Sequence[float], shift: float, limit_percent: float) -> list[float]:
    """Those that a test with this slow-down would have taken."""
    taken: list[float] = []
    for ratio in run:
        taken.append(ratio + shift)
        if decided(taken, limit_percent):
            break
    return taken
