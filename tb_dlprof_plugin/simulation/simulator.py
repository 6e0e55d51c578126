"""Simulates the step without the profiler after changes.

The replay is scaled to `step_estimate`: a change shortens the step by the share by which it shortens the replay. So
every saving refers to the unprofiled step, none exceeds it, and several changes are simulated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.basis import basis
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate
from tb_dlprof_plugin.simulation.recorder_cost import CpuShare
from tb_dlprof_plugin.simulation.replay import Replayed

_GPU_PACED, _GPU_PACED_WITH_GAPS = 0.9, 0.85
"""With the GPU busy for this share of a step it sets the pace. Where the CPU is not busy, the rest may be the gaps of a
microsecond between kernels, which take up to a tenth of a step of a thousand short ones."""


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """Mean times of a step without the profiler (ns): the step, the busiest GPU's work, the CPU's without its waits."""

    ns: float
    gpu_ns: float
    host_ns: float

    @property
    def gpu_paced(self) -> bool:
        """Whether the GPU sets the pace."""
        least = _GPU_PACED if self.host_ns >= _GPU_PACED * self.ns else _GPU_PACED_WITH_GAPS
        return self.gpu_ns >= least * self.ns


class Simulation:
    """The steps of the selected iterations.

    Attributes:
        estimate: the step as it is.
        share: how long launching takes, over the time that it took in what is replayed.
        timed: whether ``share`` comes from timed steps.
        off_percent: error of the replay of the recording in percent; None without launches.
    """

    def __init__(self, view: ProfileView, selection: Selection) -> None:
        self._basis = basis(view, selection)
        self.estimate: StepEstimate = step_estimate(view, selection)
        self.off_percent = self._basis.off_percent
        if self.estimate.source == "measured":
            self.share, self.timed = self._basis.share_of(self.estimate.ns)
        elif self.off_percent is None:
            # Nothing but the CPU's own work was recorded.
            self.share, self.timed = CpuShare(1.0, 1.0, 1.0), False
        else:
            self.share, self.timed = self._basis.share, False

    @property
    def trusted(self) -> bool:
        """Whether the replay models this run well enough to estimate savings."""
        return self._basis.trusted

    @property
    def from_light_window(self) -> bool:
        """Whether the light window is replayed, and not the recording."""
        return self._basis.light is not None

    def step(self, changes: Sequence[Change] = (), share: float | None = None) -> SimulatedStep:
        """The step after changes.

        Args:
            changes: made all together; none for the step as it is.
            share: another speed of the CPU than `share` expects. The step as it is stays as long as it is.
        """
        at = self.share.expected if share is None else share
        return self._scaled(self._basis.run(at, changes), at)

    @property
    def host_ends_ns(self) -> tuple[float, float, float]:
        """The CPU's own work per step (ns): at the least, as expected, at most; no more than the step."""
        known, step = self.share, self.estimate.ns
        low, middle, high = (min(self._basis.run(one).host_ns, step) for one in (known.low, known.expected, known.high))
        return low, middle, high

    def usual(self, changes: Sequence[Change], end: Literal["low", "expected", "high"]) -> SimulatedStep:
        """The step after changes with a CPU as fast as usual without the profiler, at one end of what is usual.

        For changes after which the current step does not determine how fast the CPU launches.
        """
        return self.absolute(changes, getattr(self._basis.share, end))

    def replayed_host_ns(self, share: float) -> float:
        """The CPU's own work per step in the time that is replayed, which costs of `Added` work are in (ns)."""
        return self._basis.run(share).host_ns

    def absolute(self, changes: Sequence[Change], share: float) -> SimulatedStep:
        """The step after changes with a CPU of a given speed, not scaled to the current step."""
        return self._absolute(self._basis.run(share, changes))

    def scaled_and_absolute(self, changes: Sequence[Change], share: float) -> tuple[SimulatedStep, SimulatedStep]:
        """Results of `step` and `absolute` for the same changes, from one replay."""
        after = self._basis.run(share, changes)
        return self._scaled(after, share), self._absolute(after)

    def _scaled(self, after: Replayed, share: float) -> SimulatedStep:
        before = self._basis.run(share)
        step_ns = self.estimate.ns * after.step_ns / before.step_ns if before.step_ns else 0.0
        return SimulatedStep(step_ns, min(after.gpu_ns, step_ns), min(after.host_ns, step_ns))

    def _absolute(self, after: Replayed) -> SimulatedStep:
        off = 1.0 + (self.off_percent or 0.0) / 100.0
        return SimulatedStep(after.step_ns / off, after.gpu_ns, after.host_ns)


@per_selection
def simulation(view: ProfileView, selection: Selection) -> Simulation:
    """The simulation of some iterations of a run."""
    return Simulation(view, selection)
