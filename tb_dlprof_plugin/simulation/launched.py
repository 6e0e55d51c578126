"""The launches of a run as the replay takes them: in the CPU's order, each with its work before and its stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.simulation.host import HostClock, host_clock, synchronisations
from tb_dlprof_plugin.simulation.replay import ALONE, WAIT, Event, Replayed, replay
from tb_dlprof_plugin.storage.intervals import covered, union
from tb_dlprof_plugin.storage.model import Ints

_WELL_BEFORE_NS = 20_000
_ENOUGH = 20
_TYPICAL = 0.25
_OVERLAP = 0.05
"""Streams that run side by side for less than this share of the shorter one's time wait for each other."""


@dataclass(frozen=True)
class Launched:
    """Rows by iteration and CPU time; ``launch`` is -1 for a synchronising call, and ``call`` the call of either.

    ``host_ns`` is the clean CPU time of each row; ``begin_ns`` and ``end_ns`` those of each iteration. ``gap_ns`` is
    the time between two kernels of a stream where the second waits for the first.
    """

    iteration: Ints
    launch: Ints
    call: Ints
    stream: Ints
    host_ns: np.ndarray  # type: ignore[type-arg]
    begin_ns: np.ndarray  # type: ignore[type-arg]
    end_ns: np.ndarray  # type: ignore[type-arg]
    gap_ns: float


@dataclass(frozen=True, slots=True)
class Added:
    """Work that the other precision adds before a row: CPU time, then a kernel (``gpu_ns`` 0 for none).

    ``wait`` makes the CPU wait for the GPU afterwards.
    """

    host_ns: float
    gpu_ns: float
    wait: bool = False


def launched(frame: Frame, clock: HostClock) -> Launched:
    """All launches whose call was recorded, in all iterations."""
    recorded, iterations = _recorded(frame, frame.selection()), frame.profile.iterations
    return replace(
        recorded,
        host_ns=clock.at(recorded.host_ns),
        begin_ns=clock.at(iterations.host_start_ns),
        end_ns=clock.at(iterations.host_stop_ns),
    )


@per_selection
def _recorded(frame: Frame, _: Selection) -> Launched:
    """With the CPU's times as recorded."""
    launches, calls, iterations = frame.profile.launches, frame.profile.calls, frame.profile.iterations
    rows = np.flatnonzero((launches.call >= 0) & (frame.launch_iteration >= 0))
    waits = synchronisations(frame)
    call = np.concatenate([launches.call[rows], waits])
    at = np.concatenate([calls.start_ns[launches.call[rows]], calls.start_ns[waits] + calls.duration_ns[waits]])
    iteration = np.concatenate([frame.launch_iteration[rows], frame.call_iteration[waits]])
    order = np.lexsort((at, iteration))
    return Launched(
        iteration=iteration[order],
        launch=np.concatenate([rows, np.full(len(waits), -1)])[order],
        call=call[order],
        stream=np.concatenate([_streams(frame, rows), np.full(len(waits), WAIT)])[order],
        host_ns=at[order],
        begin_ns=iterations.host_start_ns,
        end_ns=iterations.host_stop_ns,
        gap_ns=_gap_ns(frame, rows),
    )


def recorded_ns(frame: Frame, work: Launched) -> np.ndarray:  # type: ignore[type-arg]
    """Recorded GPU time of each row; 0 for a synchronising call."""
    recorded = np.zeros(len(work.launch))
    is_launch = work.launch >= 0
    recorded[is_launch] = frame.profile.launches.duration_ns[work.launch[is_launch]]
    return recorded


def replay_as_recorded(frame: Frame, unprofiled: float) -> Replayed:
    """The recorded launches once more; ``unprofiled`` is how long the CPU's work takes without the profiler."""
    return _as_recorded(frame, frame.selection()).at(unprofiled)


class _AsRecorded:
    """Replays of a run, each made once: the forecasts in all precisions start from the same."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._found: dict[float, Replayed] = {}

    def at(self, unprofiled: float) -> Replayed:
        if unprofiled not in self._found:
            work = launched(self._frame, host_clock(self._frame, unprofiled))
            self._found[unprofiled] = replay(events(work, recorded_ns(self._frame, work), {}), work.gap_ns)
        return self._found[unprofiled]


@per_selection
def _as_recorded(frame: Frame, _: Selection) -> _AsRecorded:
    return _AsRecorded(frame)


def _gap_ns(frame: Frame, rows: Ints) -> float:
    """Lower quartile over kernels launched well before the one before them ended; 0 where there are too few.

    The larger ones wait for events of other streams, or for a copy.
    """
    launches, calls = frame.profile.launches, frame.profile.calls
    order = np.lexsort((launches.start_ns[rows], launches.stream[rows], launches.device[rows]))
    rows = rows[order]
    before, after = rows[:-1], rows[1:]
    ended = launches.start_ns[before] + launches.duration_ns[before]
    called = calls.start_ns[launches.call[after]] + calls.duration_ns[launches.call[after]]
    same = (launches.stream[before] == launches.stream[after]) & (launches.device[before] == launches.device[after])
    waits = same & (called + _WELL_BEFORE_NS < ended)
    gaps = (launches.start_ns[after] - ended)[waits]
    return float(max(np.quantile(gaps, _TYPICAL), 0)) if len(gaps) >= _ENOUGH else 0.0


def _streams(frame: Frame, rows: Ints) -> Ints:
    """Device and stream of each launch as one number, the same for streams that did not really run side by side."""
    launches = frame.profile.launches
    number = launches.device[rows] * 100_000 + launches.stream[rows]
    start, stop = launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows]
    unions = {which: union(start[number == which], stop[number == which]) for which in np.unique(number).tolist()}
    length = {which: int((u[1] - u[0]).sum()) for which, u in unions.items()}
    merged: dict[int, int] = {}
    for which in sorted(unions, key=lambda w: -length[w]):
        mates = [other for other in dict.fromkeys(merged.values()) if other // 100_000 == which // 100_000]
        together = [o for o in mates if covered(unions[o], *unions[which]).sum() <= _OVERLAP * max(length[which], 1)]
        merged[which] = together[0] if together else which
    return np.array([merged[which] for which in number.tolist()], dtype=np.int64)


def events(
    work: Launched,
    gpu_ns: np.ndarray,  # type: ignore[type-arg]
    before: dict[int, list[Added]],
) -> list[list[Event]]:
    """The iterations for the replay.

    Args:
        work: the launches.
        gpu_ns: new kernel time of each row of ``work``.
        before: what is added before a row.
    """
    result = []
    any_stream = int(work.stream[work.stream >= 0][0]) if (work.stream >= 0).any() else 0
    for number in range(len(work.begin_ns)):
        rows = np.flatnonzero(work.iteration == number)
        until = np.maximum.accumulate(np.concatenate([work.begin_ns[number : number + 1], work.host_ns[rows]]))
        step: list[Event] = []
        for row, own, gpu, stream in zip(
            rows.tolist(), np.diff(until).tolist(), gpu_ns[rows].tolist(), work.stream[rows].tolist(), strict=True
        ):
            for added in before.get(row, ()):
                _add(step, added, stream if stream >= 0 else any_stream)
            step.append(Event(own, gpu, stream))
        step.append(Event(max(float(work.end_ns[number] - until[-1]), 0.0), 0.0, ALONE))
        result.append(step)
    return result


def _add(step: list[Event], added: Added, stream: int) -> None:
    step.append(Event(added.host_ns, added.gpu_ns, stream if added.gpu_ns else ALONE))
    if added.wait:
        step.append(Event(0.0, 0.0, WAIT))
