"""What a step would take without some of its waits and copies: the recorded launches, replayed.

What the CPU loses by waiting counts only where the GPU then runs out of work, and a copy only where nothing else can
run meanwhile; a replay (`timeline`) tells. It also waits at copies of pageable memory, and at copies and sets that
return when they are done. The CPU is as fast as the steps timed before the profiler say, where its speed decides how
long they are; else as usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.timeline import Timeline, play
from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.measures.iterations import percent, step_totals
from tb_dlprof_plugin.simulation.calibration import CALIBRATION
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.host import HostClock, host_clock
from tb_dlprof_plugin.simulation.launched import Launched, launched, recorded_ns
from tb_dlprof_plugin.simulation.replay import WAIT
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds
from tb_dlprof_plugin.storage.intervals import Union, covered, union
from tb_dlprof_plugin.storage.model import Bools, CallKind, Floats, Ints, KernelKind
from tb_dlprof_plugin.storage.tree import inherit

_MOST_LAUNCHES = 4000
"""A replay of so many takes a few ms; of longer recordings the first iterations are replayed, three at least."""
_SPEEDS = (0.4, 0.55, 0.65, 0.81, 1.0)
_SPEED_DECIDES = 1.1
"""The CPU's speed is read off the timed steps where the slowest of `_SPEEDS` makes a step this much longer."""
_SETS = frozenset(
    (
        *("cudaMemset", "cudaMemset2D", "cudaMemset3D", "hipMemset", "hipMemset2D", "hipMemset3D"),
        *(f"cuMemsetD{bits}{ending}" for bits in (8, 16, 32) for ending in ("", "_v2")),
    )
)
_TYPICAL_SET_NS = 20_000
_CLOCK_ERROR_NS = 10_000
"""By which the clocks of CPU and GPU may disagree: launches of recorded traces seem to begin up to 5 us too early."""
_ON_THE_HOST = ("Pinned", "Managed", "Pageable")
_BESIDE = 1_000_000
"""Streams from here on are those of work that is moved away from the others."""


@dataclass(frozen=True)
class Change:
    """What is different in a step; masks over `Profile.calls` or `Profile.launches`.

    ``gone`` are calls that are not made, with all that is in them and what they launched; ``waits_gone`` are calls at
    which the CPU goes on at once; ``gpu_ns`` has the new time of each launch; ``beside`` are launches on a stream of
    their own, which hold up no others.
    """

    gone: Bools | None = None
    waits_gone: Bools | None = None
    gpu_ns: Floats | None = None
    beside: Bools | None = None


@per_selection
def waits_for_less(frame: Frame, _: Selection) -> Bools:
    """Per row of `Profile.calls` whether it waits, and returns while the GPU still has work that was launched before.

    Such a wait is for an event or another stream: the GPU is not kept from anything by it.
    """
    calls, launches = frame.profile.calls, frame.profile.launches
    result = np.zeros(len(calls), dtype=np.bool_)
    rows = np.flatnonzero(launches.call >= 0)
    waits = np.flatnonzero(sync_kinds(frame, frame.selection()) == SyncKind.WAIT)
    if not len(rows) or not len(waits):
        return result
    called = calls.start_ns[launches.call[rows]]
    order = np.argsort(called, kind="stable")
    done = np.maximum.accumulate((launches.start_ns + launches.duration_ns)[rows][order])
    before = np.searchsorted(called[order], calls.start_ns[waits], side="left") - 1
    stop = calls.start_ns[waits] + calls.duration_ns[waits]
    result[waits] = (before >= 0) & (done[np.maximum(before, 0)] > stop + _CLOCK_ERROR_NS)
    return result


@per_selection
def waiting_sets(frame: Frame, _: Selection) -> Bools:
    """Per row of `Profile.calls` whether it sets memory that the CPU owns, and returns when that is done.

    Sets of the GPU's own memory return at once, under whatever name ("API synchronization behavior" in the CUDA Runtime
    API's reference).
    """
    profile = frame.profile
    kernels, strings = profile.kernels, profile.strings
    result = np.zeros(len(profile.calls), dtype=np.bool_)
    on_host = np.array([any(w in strings[i] for w in _ON_THE_HOST) for i in kernels.name.tolist()], dtype=np.bool_)
    rows = (on_host & (kernels.kind == KernelKind.MEMSET))[profile.launches.kernel] & (profile.launches.call >= 0)
    result[profile.launches.call[rows]] = True
    return result & calls_named(frame, CallKind.RUNTIME, _SETS.__contains__)


def idle_ns(case: Case) -> int:
    """GPU idle time per step: the most that can be gained where the GPU is not waited for."""
    return max(0, case.step_ns - (case.steps.gpu_busy_ns or 0) // case.selection.count)


def step_without_profiler_ns(case: Case) -> float:
    """The step that savings are held to: as timed or recorded, else by a replay that knows all waits."""
    step = step_estimate(case.frame, case.selection)
    if not step.estimated:
        return step.ns
    again = _replays(case.frame, case.frame.selection())
    return min(again.base_ns(again.speed), step.recorded_ns)


def saved(
    case: Case,
    expected: Change,
    derivation: str,
    low: Change | None = None,
    high: Change | None = None,
    limit_ns: float | None = None,
) -> SavingItem:
    """The saving per step, without the profiler, where a step changes.

    Args:
        case: the run.
        expected: the change.
        derivation: how the change comes about; that of the replay is added to it.
        low: the change that saves least; the same where None.
        high: the change that saves most; the same where None.
        limit_ns: the most that can be saved per step.
    """
    again = _replays(case.frame, case.frame.selection())
    step_ns = step_without_profiler_ns(case)

    def share(speed: float, change: Change) -> float:
        # The replay's own error is in both steps: their ratio has less of it than their difference.
        return 1.0 - again.step_ns(speed, change) / again.base_ns(speed)

    middle = share(again.speed, expected)
    # What is not worth a finding is not worth its interval either.
    speeds = again.speeds if 100.0 * middle >= thresholds.WORTHWHILE_SAVING_PERCENT else (again.speed,)
    shares = [share(speed, expected) for speed in speeds]
    least = shares if low is None else [share(speed, low) for speed in speeds]
    best = shares if high is None else [share(speed, high) for speed in speeds]
    # The GPU's work that is left takes its time.
    most = max(0.0, step_ns - again.busy_ns(high or expected))
    most = most if limit_ns is None else min(most, limit_ns)
    doubt, noise = thresholds.REPLAYED_WAITS, thresholds.STEP_NOISE
    low_ns, expected_ns, high_ns = (
        min(max(part * step_ns, 0.0), most)
        for part in (min(least) * doubt.low - noise, middle, max(best) * doubt.high + noise)
    )
    text = (
        f"{derivation} The recorded launches, replayed as without the profiler, take "
        f"{again.base_ns(again.speed) / 1e6:.2f} ms a step and {again.step_ns(again.speed, expected) / 1e6:.2f} ms "
        f"after the change; {again.how}. Of such savings {doubt.low:g} to {doubt.high:g} are realised."
    )
    return saving_of(case, round(low_ns), round(expected_ns), round(high_ns), text)


def usual_steps_ns(case: Case, change: Change) -> tuple[float, float, float]:
    """The step after a change, at least, as expected and at most, with a CPU as fast as usual without the profiler.

    For a change after which the steps timed before the profiler say nothing of the CPU's speed.
    """
    again, known = _replays(case.frame, case.frame.selection()), CALIBRATION
    least, middle, most = (
        again.step_ns(speed, change) for speed in (known.unprofiled_low, known.unprofiled, known.unprofiled_high)
    )
    return least, middle, most


def saving_of(case: Case, low_ns: int, expected_ns: int, high_ns: int, derivation: str) -> SavingItem:
    """A saving with its share of the step without the profiler."""
    return SavingItem(
        low_ns=min(low_ns, expected_ns),
        expected_ns=expected_ns,
        high_ns=max(high_ns, expected_ns),
        percent=percent(expected_ns, step_without_profiler_ns(case)) or 0.0,
        derivation=derivation,
    )


class _Replays:
    """Replays of the first iterations of a run, those of the run as it is each made once."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        iteration = frame.launch_iteration
        per_iteration = np.bincount(iteration[iteration >= 0], minlength=len(frame.profile.iterations))
        fitting = int(np.searchsorted(np.cumsum(per_iteration), _MOST_LAUNCHES))
        self._iterations = min(max(fitting, 3), len(frame.profile.iterations))
        self._waits = _more_waits(frame)
        self._less = waits_for_less(frame, frame.selection())
        self._clocks: dict[float, HostClock] = {}
        self._bases: dict[float, float] = {}
        self.speeds, self.how = self._find_speeds()

    @property
    def speed(self) -> float:
        """The one in the middle."""
        return self.speeds[len(self.speeds) // 2]

    def busy_ns(self, change: Change) -> float:
        """GPU time per step that a change leaves, at least: what goes may have run beside other work."""
        frame, launches = self._frame, self._frame.profile.launches
        selection = frame.selection()
        busy = (step_totals(frame, selection).gpu_busy_ns or 0) / selection.count
        gone = np.zeros(len(launches))
        if change.gpu_ns is not None and len(change.gpu_ns):
            gone = launches.duration_ns - change.gpu_ns
        if change.beside is not None and len(change.beside):
            gone = np.where(change.beside, launches.duration_ns, gone)
        if change.gone is not None and len(launches):
            inside = inherit(change.gone, change.gone, frame.call_parent)
            gone = np.where((launches.call >= 0) & inside[np.maximum(launches.call, 0)], launches.duration_ns, gone)
        of_step = frame.launch_iteration >= 0
        return max(0.0, busy - float(gone[of_step].sum()) / selection.count)

    def base_ns(self, speed: float) -> float:
        """The mean step as it is, where the CPU takes this share of its recorded time for launching."""
        if speed not in self._bases:
            self._bases[speed] = self.step_ns(speed, Change())
        return self._bases[speed]

    def step_ns(self, speed: float, change: Change) -> float:
        """The mean step after a change."""
        frame, clock = self._frame, self._clock(speed)
        if change.gone is not None:
            calls = frame.profile.calls
            start = calls.start_ns[change.gone]
            clock = _without(clock, union(start, start + calls.duration_ns[change.gone]))
        work = launched(frame, clock)
        gpu_ns = recorded_ns(frame, work)
        is_launch, row = work.launch >= 0, np.maximum(work.launch, 0)
        if change.gpu_ns is not None and len(change.gpu_ns):
            gpu_ns = np.where(is_launch, change.gpu_ns[row], 0.0)
        stream = work.stream
        if change.beside is not None and len(change.beside):
            stream = np.where(is_launch & change.beside[row], _BESIDE + stream, stream)
        kept = (work.iteration < self._iterations) & ~((stream == WAIT) & self._less[work.call])
        if change.gone is not None:
            kept &= ~inherit(change.gone, change.gone, frame.call_parent)[work.call]
        if change.waits_gone is not None:
            kept &= ~((stream == WAIT) & change.waits_gone[work.call])
        rows = (work.iteration[kept], work.host_ns[kept], stream[kept], gpu_ns[kept])
        waits = self._waits if change.waits_gone is None else self._waits[~change.waits_gone[self._waits]]
        return play(self._with(rows, waits, change, clock, work)).step_ns

    def _with(
        self, rows: tuple[Ints, Floats, Ints, Floats], waits: Ints, change: Change, clock: HostClock, work: Launched
    ) -> Timeline:
        """With the waits that the forecast's replay does not know, behind the launches of the same calls."""
        calls = self._frame.profile.calls
        if change.gone is not None:
            waits = waits[~inherit(change.gone, change.gone, self._frame.call_parent)[waits]]
        waits = waits[self._frame.call_iteration[waits] < self._iterations]
        at = clock.at(calls.start_ns[waits] + calls.duration_ns[waits])
        added = (self._frame.call_iteration[waits], at, np.full(len(waits), WAIT), np.zeros(len(waits)))
        iteration, host_ns, stream, gpu_ns = (np.concatenate(pair) for pair in zip(rows, added, strict=True))
        order = np.lexsort((stream == WAIT, host_ns, iteration))
        count, size = self._iterations, len(order)
        return Timeline(
            bounds=np.searchsorted(iteration[order], np.arange(count + 1)),
            host_ns=host_ns[order],
            stream=stream[order],
            gpu_ns=gpu_ns[order],
            gap_ns=np.full(size, work.gap_ns),
            runs=np.ones(size, dtype=np.bool_),
            begin_ns=work.begin_ns[:count],
            end_ns=work.end_ns[:count],
        )

    def _clock(self, speed: float) -> HostClock:
        """Of a CPU that does not wait, and takes this share of its time for launching.

        Where it launches nothing for long it does something else, which the profiler does not slow down.
        """
        if speed not in self._clocks:
            frame, calls = self._frame, self._frame.profile.calls
            sets = waiting_sets(frame, frame.selection())
            start = calls.start_ns[sets] + _TYPICAL_SET_NS
            fast, slow = host_clock(frame, speed), host_clock(frame, 1.0)
            pauses = _pauses(frame)
            edges = np.unique(np.concatenate((fast.edges.astype(np.int64), *pauses)))
            paused = covered(pauses, edges[:-1], edges[1:]) > 0
            step = np.where(paused, np.diff(slow.at(edges)), np.diff(fast.at(edges)))
            clock = HostClock(edges.astype(np.float64), np.concatenate(([0.0], np.cumsum(step))))
            self._clocks[speed] = _without(clock, union(start, calls.start_ns[sets] + calls.duration_ns[sets]))
        return self._clocks[speed]

    def _find_speeds(self) -> tuple[tuple[float, ...], str]:
        """How long launching takes without the profiler, as a share, and how that is known."""
        known, timed = CALIBRATION, self._frame.profile.facts.unprofiled_step_ns
        usual = (known.unprofiled_low, known.unprofiled, known.unprofiled_high)
        if timed:
            steps = [self.base_ns(speed) for speed in _SPEEDS]
            if steps[-1] >= _SPEED_DECIDES * steps[0] and timed >= steps[0]:
                own = float(np.interp(timed, np.maximum.accumulate(steps), _SPEEDS))
                text = f"launching takes {own:.2f} of its recorded time, by the steps timed before the profiler"
                return (0.9 * own, own, min(1.1 * own, 1.0)), text
        return usual, f"launching takes {usual[0]:g} to {usual[2]:g} of its recorded time"


@per_selection
def _replays(frame: Frame, _: Selection) -> _Replays:
    return _Replays(frame)


def _more_waits(frame: Frame) -> Ints:
    """Rows of the calls that wait for the GPU though they are not named for it."""
    kind = sync_kinds(frame, frame.selection())
    waits = (kind == SyncKind.COPY) | (kind == SyncKind.PAGEABLE_COPY) | waiting_sets(frame, frame.selection())
    return np.flatnonzero(waits & (frame.call_iteration >= 0))


def _pauses(frame: Frame) -> Union:
    """Times in which no thread launches anything for long."""
    calls = frame.profile.calls
    rows = np.flatnonzero(launching_calls(frame))
    start, stop = union(calls.start_ns[rows], calls.start_ns[rows] + calls.duration_ns[rows])
    long = start[1:] - stop[:-1] > thresholds.PAUSE_NS
    return stop[:-1][long], start[1:][long]


def _without(clock: HostClock, intervals: Union) -> HostClock:
    """A clock that stands still in these intervals."""
    if not len(intervals[0]):
        return clock
    edges = np.unique(np.concatenate((clock.edges.astype(np.int64), *intervals)))
    step = np.diff(clock.at(edges))
    step[covered(intervals, edges[:-1], edges[1:]) > 0] = 0.0
    return HostClock(edges.astype(np.float64), np.concatenate(([0.0], np.cumsum(step))))
