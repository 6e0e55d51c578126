"""The step without the profiler, and what the CPU needs of it, in one glance: no launch is replayed."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.simulation.calibration import CALIBRATION

_CPU_PACED = 1.2
"""A step this many times as long as its GPU work is paced by the CPU, as in the forecast."""


@dataclass(frozen=True, slots=True)
class Unprofiled:
    """Times of a step without the profiler (ns): of the step, and of the CPU's own work, between two ends.

    ``timed`` says that the step was timed before the profiler began; else it is an estimate.
    """

    step_ns: float
    cpu_ns: float
    cpu_low_ns: float
    cpu_high_ns: float
    timed: bool


def unprofiled(case: Case) -> Unprofiled:
    """By the steps timed before the profiler; else the longer of the GPU's work and the CPU's as it usually is."""
    busy = (case.steps.gpu_busy_ns or 0) / case.selection.count
    floor, known, timed = float(case.host_floor_ns), CALIBRATION, case.facts.unprofiled_step_ns
    shares = (known.unprofiled, known.unprofiled_low, known.unprofiled_high)
    if not timed:
        cpu, low, high = (floor * share for share in shares)
        return Unprofiled(min(max(busy, cpu), float(case.step_ns)), cpu, low, high, False)
    if timed > _CPU_PACED * busy:
        return Unprofiled(float(timed), float(timed), float(timed), float(timed), True)
    # The CPU keeps up with the GPU, so it needs no longer than the step.
    cpu, low, high = (min(floor * share, float(timed)) for share in shares)
    return Unprofiled(float(timed), cpu, low, high, True)
