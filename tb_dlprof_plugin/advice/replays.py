"""What a step would take with some of its CPU time or kernels gone: the recorded launches, run again.

Without the profiler the CPU launches faster; a pause between launches, in which it computes or loads, stays as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.launching import full_speed, recorded_clock
from tb_dlprof_plugin.advice.thresholds import Speedup
from tb_dlprof_plugin.advice.timeline import Replayed, Timeline, play
from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.simulation.calibration import CALIBRATION
from tb_dlprof_plugin.simulation.launched import launched, recorded_ns
from tb_dlprof_plugin.storage.intervals import Union
from tb_dlprof_plugin.storage.model import Floats, Ints

_CPU_PACED = 1.05
"""A step this many times as long as with the fastest CPU tells how fast the CPU is without the profiler."""
_HALVINGS = 7
_GPU_PACED = 0.9
_CPU_ERROR, _GPU_ERROR = 0.064, 0.02
"""Of a step that was replayed. Where the CPU paces it: the median error on recorded runs (docs/comparing.md). Where the
GPU does, for this share of it at least: what step times of one run vary by."""
_FASTEST = 0.3
"""The profiler makes no launching slower than by this: on recorded runs by 0.5 at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a step.

    ``cpu`` are recorded times of the CPU (ns), disjoint and in order, of which the share ``keep_cpu`` stays. ``gpu`` is
    what of each row of `Profile.launches` stays, 0 for a launch that goes altogether. ``keep_gaps`` stays of the time
    between two kernels of which the second waits for the first.
    """

    cpu: Union | None = None
    keep_cpu: float = 1.0
    gpu: Floats | None = None
    keep_gaps: float = 1.0


@dataclass(frozen=True, slots=True)
class CpuSpeed:
    """Time that launching takes without the profiler over that with it; the truth lies between the ends.

    ``timed`` says that steps before the profiler told it.
    """

    low: float
    expected: float
    high: float
    timed: bool


@per_selection
def cpu_speed(frame: Frame, selection: Selection) -> CpuSpeed:
    """The speed with which the replay takes as long as the steps timed before the profiler; else what is usual.

    Where the GPU sets the pace those steps only tell how slow the CPU is at most.
    """
    known, measured_ns = CALIBRATION, frame.profile.facts.unprofiled_step_ns
    usual = CpuSpeed(known.unprofiled_low, known.unprofiled, known.unprofiled_high, False)
    if not measured_ns:
        return usual
    again = replays(frame, selection)
    if again.run(1.0).step_ns < measured_ns:
        # Something takes time that the replay does not know, such as kernels side by side that share the GPU.
        return usual
    low, high = _FASTEST, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if again.run(middle).step_ns <= measured_ns else (low, middle)
    if again.run(low).step_ns > _CPU_PACED * again.run(_FASTEST).step_ns:
        return CpuSpeed(low, low, low, True)
    return CpuSpeed(min(usual.low, low), min(usual.expected, low), min(usual.high, low), False)


def that_goes(left: Speedup) -> str:
    """Of the shares that may be left, what goes: "20 to 100 % (expected 75 %)"."""
    least, expected, most = (100 * (1 - share) for share in (left.high, left.expected, left.low))
    return f"{least:.0f} to {most:.0f} % (expected {expected:.0f} %)"


def unprofiled_ns(case: Case) -> float:
    """The step without the profiler: as timed before it, else by replay (ns)."""
    timed = case.facts.unprofiled_step_ns
    return float(timed) if timed else unprofiled_base(case).step_ns


def unprofiled_base(case: Case) -> Replayed:
    """The recorded steps, replayed as without the profiler."""
    return replays(case.frame, case.selection).run(cpu_speed(case.frame, case.selection).expected)


def shorter_step(
    case: Case, low: Change, expected: Change, high: Change, derivation: str, at_most_ns: float | None = None
) -> SavingItem:
    """The saving if the step changed in one of three ways, per step without the profiler.

    Args:
        case: the run.
        low: what is certain to go.
        expected: what should go.
        high: what can go at best.
        derivation: how the changes come about; the replay is added to it.
        at_most_ns: no more than this can be saved per step.
    """
    speed, again = cpu_speed(case.frame, case.selection), replays(case.frame, case.selection)
    base = unprofiled_ns(case)
    most = base if at_most_ns is None else min(base, at_most_ns)

    def saved(at: float, change: Change) -> float:
        """Of the step without the profiler, which the replay may not meet: the same share of it."""
        before = again.run(at).step_ns
        return base * max(1.0 - again.run(at, change).step_ns / before, 0.0)

    middle = min(saved(speed.expected, expected), most)
    ends = [middle, *(saved(at, change) for change in (low, high) for at in {speed.low, speed.high})]
    if middle > 0 or max(ends) > 0:
        # What the replay misses of the step may go as well, and it misses what the step takes afterwards.
        before = again.run(speed.expected)
        missed = max(0.0, base - before.step_ns)
        error = _GPU_ERROR if before.gpu_ns >= _GPU_PACED * before.step_ns else _CPU_ERROR
        ends += [min(ends) - error * (base - min(ends)), max(ends) + missed + error * (base - max(ends))]
    ends = [min(max(end, 0.0), most) for end in ends]
    how = (
        "the CPU as fast as in the steps timed before the profiler"
        if speed.timed
        else f"launching in {speed.low:.2f} to {speed.high:.2f} of its recorded time"
    )
    return SavingItem(
        low_ns=round(min(ends)),
        expected_ns=round(middle),
        high_ns=round(max(ends)),
        percent=percent(middle, base) or 0.0,
        derivation=f"{derivation} Without the profiler the step takes {base / 1e6:.2f} ms; the recorded launches, "
        f"replayed ({how}), become {percent(middle, base) or 0.0:.0f} % shorter by the change.",
    )


@per_selection
def replays(frame: Frame, selection: Selection) -> Replays:
    """The launches of the selected iterations, for as many replays as are asked for."""
    return Replays(frame, selection)


class Replays:
    """Columns have one row per launch and synchronising call, by iteration and CPU time."""

    def __init__(self, frame: Frame, selection: Selection) -> None:
        self._count = selection.count
        clock = recorded_clock(frame, selection)
        work = launched(frame, clock)
        chosen = np.flatnonzero((work.iteration >= selection.first) & (work.iteration <= selection.last))
        self._bounds = np.searchsorted(work.iteration[chosen], np.arange(selection.first, selection.last + 2))
        self._launch, self._stream = work.launch[chosen], work.stream[chosen]
        self._gpu_ns, self._gap_ns = recorded_ns(frame, work)[chosen], work.gap_ns
        calls, iterations = frame.profile.calls, frame.profile.iterations
        call, steps = work.call[chosen], slice(selection.first, selection.last + 1)
        at = calls.start_ns[call] + np.where(self._launch >= 0, 0, calls.duration_ns[call])
        # The CPU's moments: of each row, then the beginnings, then the ends of the iterations.
        self._moments = np.concatenate([at, iterations.host_start_ns[steps], iterations.host_stop_ns[steps]])
        self._clock, self._full_speed = clock, full_speed(frame, selection)
        self._clean = clock.at(self._moments)
        self._unslowed = self._until(self._full_speed, self._moments)
        self._as_recorded: dict[float, Replayed] = {}

    def run(self, speed: float, change: Change | None = None) -> Replayed:
        """The mean step; ``speed`` is how long launching takes without the profiler, 1 for as recorded.

        The first iteration only fills the queue, where there is more than one.
        """
        if change is None:
            if speed not in self._as_recorded:
                self._as_recorded[speed] = self._run(speed, Change())
            return self._as_recorded[speed]
        return self._run(speed, change)

    def _run(self, speed: float, change: Change) -> Replayed:
        gpu, gap = self._gpu_ns, np.full(len(self._gpu_ns), self._gap_ns * change.keep_gaps)
        if change.gpu is not None:
            stays = np.where(self._launch >= 0, change.gpu[np.maximum(self._launch, 0)], 1.0)
            # Less time is fewer kernels: as many gaps go.
            gpu, gap = gpu * stays, gap * np.minimum(stays, 1.0)
        moments = speed * self._clean + (1.0 - speed) * self._unslowed
        if change.cpu is not None:
            moments = moments - (1.0 - change.keep_cpu) * self._gone(change.cpu, speed)
        rows, count = len(gpu), self._count
        begin, end = moments[rows : rows + count], moments[rows + count :]
        return play(Timeline(self._bounds, moments[:rows], self._stream, gpu, gap, gpu > 0, begin, end))

    def _gone(self, intervals: Union, speed: float) -> Floats:
        """How much of the CPU's time before each moment lies in the intervals."""
        starts, stops = intervals
        if not len(starts):
            return np.zeros(len(self._moments))
        edges = np.concatenate([starts, stops, self._moments])
        times = speed * self._clock.at(edges) + (1.0 - speed) * self._until(self._full_speed, edges)
        first, last, at = times[: len(starts)], times[len(starts) : 2 * len(starts)], times[2 * len(starts) :]
        return _before(starts, first, last, self._moments, at)

    def _until(self, intervals: Union, moments: Ints) -> Floats:
        """How much of the intervals lies before each moment, in the recorded clock's time."""
        at = self._clock.at
        return _before(intervals[0], at(intervals[0]), at(intervals[1]), moments, at(moments))


def _before(starts: Ints, first: Floats, last: Floats, moments: Ints, at: Floats) -> Floats:
    """How much of disjoint intervals lies before each moment: ``first``, ``last`` and ``at`` are their clean times."""
    if not len(starts):
        return np.zeros(len(moments))
    whole = np.concatenate([[0.0], np.cumsum(last - first)])
    index = np.searchsorted(starts, moments, side="right")
    known = np.maximum(index - 1, 0)
    result: Floats = np.where(index > 0, whole[known] + np.minimum(at, last[known]) - first[known], 0.0)
    return result
