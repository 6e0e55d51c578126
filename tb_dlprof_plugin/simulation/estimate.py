"""How long the user's step is without the profiler: the one figure that every rate, share, speedup and saving hangs on.

Four sources, the best that a recording has: steps timed without the profiler, the light window (GPU activities and CUDA
calls alone), the recorded launches replayed with the recorder's cost taken out, and, where the recorder cannot have
changed it, the recorded step itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.simulation.calibration import CALIBRATION
from tb_dlprof_plugin.simulation.launched import replay_as_recorded
from tb_dlprof_plugin.simulation.timed_steps import LEAST_ERROR, LEAST_STEPS, timed_step
from tb_dlprof_plugin.storage.intervals import covered, union
from tb_dlprof_plugin.storage.model import Ints

StepSource = Literal["measured", "light", "simulated", "recorded"]

SOURCES: dict[StepSource, str] = {
    "measured": "timed without the profiler",
    "light": "timed with GPU activities alone",
    "simulated": "estimated",
    "recorded": "as recorded",
}
"""What pages say of a step's source, once."""

_GPU_PACED_PERCENT = 90.0
"""With the GPU busy for this share of the recorded step, the profiler changes the step by no more than the rest."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """The step without the profiler (ns).

    Attributes:
        ns: the step.
        low_ns, high_ns: ends of its 95 % interval.
        source: how ``ns`` is known.
        recorded_ns: the mean recorded step of the selected iterations, profiler included.
        steps: number of steps that were timed; None where none were.
    """

    ns: float
    low_ns: float
    high_ns: float
    source: StepSource
    recorded_ns: float
    steps: int | None = None

    @property
    def words(self) -> str:
        """How the step is known, as a clause."""
        return SOURCES[self.source]

    @property
    def estimated(self) -> bool:
        """Whether ``ns`` was measured in no way."""
        return self.source == "simulated"

    @property
    def recorder_ns(self) -> float:
        """What the recorder added to each recorded step; below 0 where the recorded step is the shorter one."""
        return self.recorded_ns - self.ns


@per_selection
def step_estimate(frame: Frame, selection: Selection) -> StepEstimate:
    """The step of a run. Only where it is the recorded one does it depend on the selected iterations."""
    recorded = float(round(frame.profile.iterations.duration_ns[selection.first : selection.last + 1].mean()))
    facts = frame.profile.facts
    groups = [group for group in (facts.unprofiled_before_ns, facts.unprofiled_after_ns) if len(group) >= LEAST_STEPS]
    if groups:
        return _measured(groups, recorded)
    if facts.unprofiled_step_ns:
        timed = float(facts.unprofiled_step_ns)
        error = LEAST_ERROR * timed
        return StepEstimate(timed, timed - error, timed + error, "measured", recorded, facts.unprofiled_steps)
    light = light_step_ns(frame)
    if light is not None:
        error = LEAST_ERROR * light
        return StepEstimate(light, light - error, light + error, "light", recorded)
    return _simulated(frame, selection, recorded)


def light_step_ns(frame: Frame) -> float | None:
    """The mean step of the light window, from completion to completion; None without at least two steps of it."""
    light = frame.profile.light_window
    if len(light) < 2 or not len(light.launches):
        return None
    launches, boundary = light.launches, light.boundary_ns
    called = np.where(launches.call >= 0, light.calls.start_ns[np.maximum(launches.call, 0)], launches.start_ns)
    step = np.searchsorted(boundary, called, side="right") - 1
    done = boundary[1:].copy()
    inside = (step >= 0) & (step < len(light))
    np.maximum.at(done, step[inside], (launches.start_ns + launches.duration_ns)[inside])
    return float(done[-1] - done[0]) / (len(light) - 1)


def _measured(groups: Sequence[Sequence[int]], recorded: float) -> StepEstimate:
    return StepEstimate(*timed_step(groups), "measured", recorded, sum(len(group) for group in groups))


def _simulated(frame: Frame, selection: Selection, recorded: float) -> StepEstimate:
    """Without a GPU, or where it sets the pace, the recorded step; else by replay."""
    busy = _busy_percent(frame, selection)
    if busy is None or busy >= _GPU_PACED_PERCENT:
        return StepEstimate(recorded, recorded, recorded, "recorded", recorded)
    known = CALIBRATION
    # The profiler makes no step shorter.
    middle, low, high = (
        min(replay_as_recorded(frame, share).step_ns, recorded)
        for share in (known.unprofiled, known.unprofiled_low, known.unprofiled_high)
    )
    return StepEstimate(middle, min(low, middle), max(high, middle), "simulated", recorded)


def _busy_percent(frame: Frame, selection: Selection) -> float | None:
    """Share of the selected iterations in which the busiest GPU works; None without a GPU."""
    launches, iterations = frame.profile.launches, frame.profile.iterations
    if not len(launches):
        return None
    start: Ints = iterations.start_ns[selection.first : selection.last + 1]
    stop: Ints = iterations.stop_ns[selection.first : selection.last + 1]
    shares = []
    for device in np.unique(launches.device).tolist():
        mine = launches.device == device
        running = union(launches.start_ns[mine], launches.start_ns[mine] + launches.duration_ns[mine])
        shares.append(100.0 * float(covered(running, start, stop).sum()) / max(float((stop - start).sum()), 1.0))
    return max(shares)
