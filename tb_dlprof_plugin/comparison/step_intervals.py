"""Ratio and difference of two steps without the profiler, each with its 95 % interval.

A step's error is taken as a factor: its logarithm is normal, with a width of its own on either side. The errors of two
runs count as independent. Those of two simulated steps are not quite (0.44 is their correlation over 24 recorded pairs
on an H200), so that the interval is rather wide than narrow. Where the recorded step stands for the step, how much its
iterations vary comes on top (`noise`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.comparison.noise import half_width
from tb_dlprof_plugin.simulation.estimate import StepEstimate, StepSource

LEAST_ERROR_BETWEEN_RUNS: dict[StepSource, float] = {
    "measured": 0.015,
    "light": 0.015,
    "simulated": 0.05,
    "recorded": 0.02,
    "whole": 0.02,
}
"""Half of a step's interval at least where it is compared with another run's, as a share of it: more than the least
error of a step by itself (`simulation.timed_steps.LEAST_ERROR`). Timed steps of one process differ by 1.5 % from minute
to minute. Recorded steps of the GPU-paced runs in `lab/precision_pairs` and `demo` are 0.7 % too long at the
median and less than 2.1 % in 41 of 42; simulated ones are off by 6 % at the median."""
_MOST_ERROR = math.log(10.0)
"""The uncertainty of a step is capped at a factor of ten."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """The step of a run without the profiler, and the durations of its recorded iterations (ns)."""

    estimate: StepEstimate
    iteration_ns: Sequence[int]

    @property
    def errors(self) -> tuple[float, float]:
        """Widths of the 95 % interval below and above the step, as logarithms of factors."""
        step = self.estimate
        least = math.log1p(LEAST_ERROR_BETWEEN_RUNS[step.source])
        below = math.log(step.ns / step.low_ns) if min(step.ns, step.low_ns) > 0 else _MOST_ERROR
        above = math.log(step.high_ns / step.ns) if min(step.ns, step.high_ns) > 0 else _MOST_ERROR
        return min(max(below, least), _MOST_ERROR), min(max(above, least), _MOST_ERROR)

    @property
    def ends_ns(self) -> tuple[float, float]:
        """The interval itself."""
        below, above = self.errors
        return self.estimate.ns * math.exp(-below), self.estimate.ns * math.exp(above)


def ratio_interval(base: TimedStep, candidate: TimedStep) -> tuple[float, float] | None:
    """95 % interval of base over candidate; None where a recorded step has a single iteration, or no length."""
    scatter = _scatter(base, candidate, relative=True)
    if scatter is None or base.estimate.ns <= 0 or candidate.estimate.ns <= 0:
        return None
    (base_below, base_above), (below, above) = base.errors, candidate.errors
    middle = math.log(base.estimate.ns / candidate.estimate.ns)
    return (
        math.exp(middle - math.hypot(base_below, above, scatter)),
        math.exp(middle + math.hypot(base_above, below, scatter)),
    )


def difference_interval(base: TimedStep, candidate: TimedStep, scale: float = 1.0) -> tuple[float, float] | None:
    """95 % interval of ``scale * candidate - base`` (ns); None where a recorded step has a single iteration."""
    scatter = _scatter(base, candidate, relative=False, scale=scale)
    if scatter is None:
        return None
    before, after = base.estimate.ns, scale * candidate.estimate.ns
    (base_low, base_high), (low, high) = base.ends_ns, candidate.ends_ns
    difference = after - before
    return (
        difference - math.hypot(after - scale * low, base_high - before, scatter),
        difference + math.hypot(scale * high - after, before - base_low, scatter),
    )


def agree(predicted: tuple[float, float, float], measured: tuple[float, float, float]) -> bool:
    """Whether two independent values, each as low end, value, high end, agree within their intervals."""
    (lower, value, upper), (low, other, high) = predicted, measured
    gap = other - value
    return gap <= math.hypot(upper - value, other - low) if gap > 0 else -gap <= math.hypot(value - lower, high - other)


def _scatter(a: TimedStep, b: TimedStep, relative: bool, scale: float = 1.0) -> float | None:
    """Welch's half width from the iterations of the sides whose step is the recorded one; 0 where none is."""
    parts: list[tuple[float, int]] = []
    for side, factor in ((a, 1.0), (b, scale)):
        if not side.estimate.as_recorded:
            parts.append((0.0, 2))
            continue
        values = np.asarray(side.iteration_ns, dtype=np.float64) * factor
        if len(values) < 2 or values.mean() <= 0:
            return None
        variance = float(values.var(ddof=1))
        parts.append((variance / float(values.mean()) ** 2 if relative else variance, len(values)))
    (variance_a, count_a), (variance_b, count_b) = parts
    return float(half_width(np.array([variance_a]), count_a, np.array([variance_b]), count_b)[0])
