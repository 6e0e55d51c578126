"""Replays a job with the hosts of its ranks: when each call starts, if paths or transfers were other than recorded.

As in `replay` a collective ends one transfer after its last member has started. A member starts when its GPU and its
host have come so far, each by the longer of its two paths from the call before (`rank_facts.PATHS`). The steps are run
again and again until the hosts have the lead that they have in a long training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import PathTimes
from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.replay import Wave, ends
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.simulation.replay import LAUNCH_LATENCY_NS

ROUNDS, STEADY = 6, 0.001
"""The steps are run so often, or until they take as long as the time before but for this share."""


@dataclass(frozen=True, slots=True)
class Paced:
    """Times to replay, a row per call (ns). ``joined`` False: no rank waits for a call."""

    paths: PathTimes
    transfer: Floats
    joined: bool = True


@dataclass(frozen=True, slots=True)
class PacedStep:
    """Times in ns.

    Attributes:
        step: mean step of the job, the longest rank's.
        of_rank: mean step of each rank.
        hidden: of each call, how long its rank waits for others in it while the GPU works.
        stalled: of each call, how long its rank's GPU waits for its end.
    """

    step: float
    of_rank: Floats
    hidden: Floats
    stalled: Floats


class Course:
    """What all replays of a job have in common.

    Attributes:
        calls: as recorded.
        later: the waves without the first step, after which the step is counted.
        rows: of the calls in them, in that order.
        leads, place: of each of ``rows``, `Calls.leads`, and the place of its stream among those of all ranks.
    """

    def __init__(self, calls: Calls, order: Sequence[Wave]) -> None:
        self.calls, self.later = calls, _later_waves(calls, order)
        self.rows: Ints = np.concatenate([np.zeros(0, dtype=np.int64), *(wave.rows for wave in self.later)])
        self.streams = int(calls.stream.max(initial=0)) + 1
        self.place = calls.rank[self.rows] * self.streams + calls.stream[self.rows]
        self.leads = calls.leads[self.rows]
        old = np.empty(len(calls.rank))
        for rank in range(calls.ranks):
            rows = calls.of_rank(rank)
            old[rows] = np.maximum.accumulate(calls.ready[rows])
        self._gaps: Floats = np.diff(old, prepend=0.0)
        self._gaps[calls.first[:-1][np.diff(calls.first) > 0]] = 0.0
        self._ready, self._block = _Place.of(calls, old, calls.ready), _Place.of(calls, old, calls.block)

    def overlap(self, gpu: Floats) -> Floats:
        """Own time from when a call is ready to where its rank waits for its end: the same work as recorded.

        Args:
            gpu: of each call, the GPU's work since the one before.
        """
        # Only differences within a rank count.
        new = np.cumsum(np.maximum(np.minimum(gpu, self._gaps), 0.0))
        result: Floats = np.maximum(self._block.among(new) - self._ready.among(new), 0.0)
        return result


@dataclass(frozen=True, slots=True)
class _Place:
    """Where moments of own time lie among those at which calls of the rank are ready.

    Attributes:
        before, after: the calls around it. share: of the way from one to the other.
        beyond: own time after the last call, which goes on as recorded.
    """

    before: Ints
    after: Ints
    share: Floats
    beyond: Floats

    @staticmethod
    def of(calls: Calls, old: Floats, moments: Ints) -> _Place:
        before, after = np.empty(len(old), dtype=np.int64), np.empty(len(old), dtype=np.int64)
        for rank in range(calls.ranks):
            rows = calls.of_rank(rank)
            before[rows] = np.maximum(np.searchsorted(old[rows], moments[rows], side="right") - 1, 0) + rows.start
            after[rows] = np.minimum(before[rows] + 1, rows.stop - 1)
        since, way = np.maximum(moments - old[before], 0.0), old[after] - old[before]
        share = np.divide(since, way, out=np.zeros(len(old)), where=way > 0)
        return _Place(before, after, share, np.where(after == before, since, 0.0))

    def among(self, new: Floats) -> Floats:
        """The moments, when calls are ready at other ones."""
        result: Floats = new[self.before] + self.share * (new[self.after] - new[self.before]) + self.beyond
        return result


def paced_replay(course: Course, times: Paced) -> PacedStep:
    """The step of a long training with these times.

    Args:
        course: of more than one step.
        times: what is replayed.
    """
    machine = _Machine(course, times)
    before, length = machine.end, 0.0
    for _ in range(ROUNDS):
        last, before = length, machine.end.copy()
        machine.run()
        length = float((machine.end - before).max(initial=0.0))
        if abs(length - last) <= STEADY * length:
            break
    of_rank = (machine.end - before) / (course.calls.steps - 1)
    return PacedStep(float(of_rank.max(initial=0.0)), of_rank, machine.hidden, machine.stalled)


def recorded_replay(course: Course, times: Paced) -> float:
    """The mean step after the first one (ns), from the state in which that ended on each rank; see `paced_replay`."""
    machine = _Machine(course, times)
    machine.begin_as_recorded()
    machine.run()
    return float(machine.end.max(initial=0.0)) / (course.calls.steps - 1)


def recorded_pace(calls: Calls) -> float:
    """The mean step as recorded (ns), from the end of the first step's last call to that of the last step."""
    ends = np.zeros(calls.ranks)
    for rank in range(calls.ranks):
        rows = calls.of_rank(rank)
        of_first = calls.stop[rows][calls.step[rows] == 0]
        if len(of_first) and calls.steps > 1:
            ends[rank] = calls.stop[rows].max() - of_first.max()
    return float(ends.max(initial=0.0)) / max(calls.steps - 1, 1)


class _Machine:
    """The state between waves: the times of each rank's GPU and host at its last call, when its streams are free."""

    def __init__(self, course: Course, times: Paced) -> None:
        calls, rows = course.calls, course.rows
        self._course, self._times = course, times
        self.gpu, self.host, self.end = np.zeros(calls.ranks), np.zeros(calls.ranks), np.zeros(calls.ranks)
        self._stream = np.zeros(calls.ranks * course.streams)
        self._overlap_of_all = course.overlap(times.paths.gpu)
        # In the order of computation, so that a wave reads what lies together.
        self._overlap = self._overlap_of_all[rows]
        self._to_gpu, self._to_gpu_after_host, self._to_host, self._to_host_after_gpu = (
            column[rows] for column in times.paths.columns
        )
        self._transfer = times.transfer[rows]
        self._blocks: Bools = calls.blocks[rows] & times.joined
        self._hidden, self._stalled = np.zeros(len(rows)), np.zeros(len(rows))

    def begin_as_recorded(self) -> None:
        """The state at the end of each rank's last call in the first step."""
        calls, times = self._course.calls, self._times
        for rank in range(calls.ranks):
            rows = np.arange(calls.first[rank], calls.first[rank + 1])
            rows = rows[calls.step[rows] == 0]
            if len(rows):
                last = rows[-1]
                self.host[rank] = -float(calls.lead[last] + calls.duration[last])
                self.gpu[rank] = -float(
                    self._overlap_of_all[last] if calls.blocks[last] and times.joined else calls.duration[last]
                )

    def run(self) -> None:
        """Everything after the first step."""
        course, joined = self._course, self._times.joined
        done = 0
        for wave in course.later:
            here, rank = slice(done, done + len(wave.rows)), wave.rank
            done = here.stop
            place = course.place[here]
            gpu, host = self.gpu[rank], self.host[rank]
            ready = np.maximum(gpu + self._to_gpu[here], host + self._to_gpu_after_host[here])
            launched = np.maximum(host + self._to_host[here], gpu + self._to_host_after_gpu[here])
            start = np.maximum(np.maximum(ready, launched + LAUNCH_LATENCY_NS), self._stream[place])
            own = self._transfer[here]
            end = ends(wave, start, course.leads[here], own) if joined else start + own
            self._stream[place] = end
            goes_on = ready + self._overlap[here]
            blocks = self._blocks[here]
            stalled = np.where(blocks, np.maximum(end - goes_on, 0.0), 0.0)
            self.gpu[rank] = ready + stalled
            self.host[rank] = launched
            self.end[rank] = np.maximum(self.end[rank], end)
            waited = np.maximum(end - own - start, 0)
            self._hidden[here] = np.where(blocks, np.minimum(np.maximum(goes_on - start, 0), waited), waited)
            self._stalled[here] = stalled

    @property
    def hidden(self) -> Floats:
        """See `PacedStep`."""
        return self._by_call(self._hidden)

    @property
    def stalled(self) -> Floats:
        """See `PacedStep`."""
        return self._by_call(self._stalled)

    def _by_call(self, column: Floats) -> Floats:
        result = np.zeros(len(self._course.calls.rank))
        result[self._course.rows] = column
        return result


def _later_waves(calls: Calls, order: Sequence[Wave]) -> list[Wave]:
    """The waves without the first step."""
    result = []
    for wave in order:
        later = calls.step[wave.rows] > 0
        if later.all():
            result.append(wave)
        elif later.any():
            # A collective is one step's on all of its members.
            number = np.cumsum(np.isin(np.arange(len(wave.rows)), wave.begin)) - 1
            kept = number[later]
            begin = np.flatnonzero(np.diff(kept, prepend=-1))
            member_of = np.cumsum(np.diff(kept, prepend=kept[0]) != 0)
            result.append(Wave(wave.rows[later], wave.rank[later], begin, member_of))
    return result
