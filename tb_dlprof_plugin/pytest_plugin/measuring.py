"""Two processes of a test's step in turns, and what was measured of them."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from tb_dlprof_plugin.model.regression import RegressionVerdict
from tb_dlprof_plugin.pytest_plugin.judging import decided, verdict_of_pairs
from tb_dlprof_plugin.pytest_plugin.serving import StepFacts
from tb_dlprof_plugin.pytest_plugin.step_process import Side, StepProcess
from tb_dlprof_plugin.trial.experiment import BLOCK_S, Bench, Measured
from tb_dlprof_plugin.trial.statistics import LOOKS
from tb_dlprof_plugin.trial.variant import VariantError

_START_S = 600.0
"""Imports, data sets and compilations of the test."""
_BLOCKS = 4
"""Of a round: base, candidate, candidate, base."""


@dataclass
class StepMeasuring:
    """The step of the base and of the candidate.

    Attributes:
        base, candidate: what their processes are started with.
        limit_percent: by how much the candidate may be slower.
        seconds: for the rounds of one pair of processes.
    """

    base: Side
    candidate: Side
    limit_percent: float
    seconds: float
    _pairs: list[Measured] = field(default_factory=list, init=False)

    def verdict(self) -> RegressionVerdict:
        """Measure. Raises VariantError where one of them fails, or where both would run the same code."""
        return verdict_of_pairs(self._measure, self.limit_percent)[0]

    def figures(self) -> dict[str, object]:
        """Steps in ms and the number of rounds, of all pairs."""
        return {
            "base_ms": statistics.fmean(one.before_ms for one in self._pairs),
            "candidate_ms": statistics.fmean(one.after_ms for one in self._pairs),
            "rounds": sum(one.gain.quads for one in self._pairs),
        }

    def _measure(self) -> Sequence[float]:
        with contextlib.ExitStack() as running:
            base, candidate = _pair(self.base, self.candidate, running, check=True)
            bench = _bench(self.seconds)
            for one in (base, candidate):
                bench.warm_up(one, _START_S)
            enough = partial(decided, limit_percent=self.limit_percent)
            self._pairs.append(bench.compare(base, candidate, self.seconds, enough=enough))
        return self._pairs[-1].log_ratios


def against_itself(side: Side, seconds: float, runs: int) -> dict[str, object]:
    """Log ratios of each run of the step against itself, in a fresh pair of processes, and the step in ms.

    Raises:
        VariantError: the test fails.
    """
    found: list[Measured] = []
    device = ""
    for _ in range(runs):
        with contextlib.ExitStack() as running:
            sides = _pair(side, side, running, check=False)
            device = sides[0].facts.device
            bench = _bench(seconds)
            for one in sides:
                bench.warm_up(one, _START_S)
            found.append(bench.compare(*sides, seconds, enough=_to_the_last_look))
    step_ms = statistics.median(one.before_ms for one in found)
    return {"device": device, "step_ms": step_ms, "log_ratios": [one.log_ratios for one in found]}


def step_alone(side: Side, seconds: float) -> tuple[float, StepFacts]:
    """The median step in ms of one process, and on what.

    Raises:
        VariantError: the test fails.
    """
    with contextlib.ExitStack() as running:
        process = StepProcess(side)
        running.callback(process.end)
        facts = process.start(_START_S)
        bench = _bench(seconds)
        step_s = bench.warm_up(process, _START_S)
        steps = max(2, math.ceil(_block_s(seconds) / step_s))
        until = time.monotonic() + seconds
        found: list[float] = []
        while not found or time.monotonic() < until:
            block = process.run(steps, _START_S)
            found.append(1e3 * block.seconds / block.steps)
        return statistics.median(found), facts


def _pair(base: Side, candidate: Side, running: contextlib.ExitStack, check: bool) -> tuple[StepProcess, StepProcess]:
    """Both processes, started at the same time.

    Args:
        base, candidate: what they are started with.
        running: ends them.
        check: that they run different code: what the step imports comes from the base, or from the working tree.

    Raises:
        VariantError: one of them failed, or the check did.
    """
    processes = StepProcess(base), StepProcess(candidate)
    for one in processes:
        running.callback(one.end)
        one.launch()
    of_base, of_candidate = (one.arrived(_START_S) for one in processes)
    if check and of_base.sources:
        raise VariantError(
            f"on {base.name} the test imports {of_base.sources[0]} of the working tree, not the base's; put the folder "
            "of the package on the path, as with `pythonpath` of pytest"
        )
    if check and not of_candidate.sources:
        raise VariantError(
            "the test imports nothing of its repository, so that both sides would run the same code: what is measured "
            "has to be a module of its own, imported from the working tree (pip install -e)"
        )
    return processes


def _bench(seconds: float) -> Bench:
    return Bench(0.0, block_s=_block_s(seconds))


def _block_s(seconds: float) -> float:
    """All looks fit in."""
    return min(BLOCK_S, seconds / (_BLOCKS * LOOKS[-1]))


def _to_the_last_look(log_ratios: Sequence[float]) -> str:
    return "no more looks are planned" if len(log_ratios) >= LOOKS[-1] else ""
