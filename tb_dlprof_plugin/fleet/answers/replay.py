"""Replays a job: when each call starts and ends, if paths or transfers were other than recorded.

A collective ends one transfer after its last member has started. A member starts when its stream is free and its GPU
and its host have come so far, each by the longer of its two paths from the call before (`rank_facts.PATHS`). Where
launches are not recorded the only path is the rank's own time. A rank goes on from where it waits for a call when the
call has ended. The steps are run again and again until the hosts have the lead that they have in a long training.

Calls that do not depend on each other are computed together, so a replay takes as many steps of numpy as the longest
chain of calls.

Sources: Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis (OSDI'25), for the end of a
collective; Liang et al., Lumos (MLSys'25), for streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import PathTimes
from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.simulation.replay import LAUNCH_LATENCY_NS

ROUNDS, STEADY = 6, 0.001
"""The steps are run so often, or until they take as long as the time before but for this share."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Calls that can be computed together: rows of `JobCalls` by collective, and where each collective begins."""

    rows: Ints
    rank: Ints
    begin: Ints
    member_of: Ints


def waves(calls: JobCalls) -> list[Wave]:
    """The order of computation: each wave holds the collectives that are next on all of their members."""
    members = np.bincount(calls.collective)
    pointer, last = calls.first[:-1].copy(), calls.first[1:]
    arrived, place = np.zeros(len(members), dtype=np.int64), np.zeros(len(members), dtype=np.int64)
    done = np.zeros(len(calls.rank) + 1, dtype=np.bool_)
    rows_of, starts = _members(calls)
    result: list[Wave] = []
    moved = np.flatnonzero(pointer < last)
    while True:
        at = calls.collective[pointer[moved]]
        np.add.at(arrived, at, 1)
        ready = at[arrived[at] == members[at]]
        # Each once, without sorting: the last of equal ones stays.
        place[ready] = np.arange(len(ready))
        ready = ready[place[ready] == np.arange(len(ready))]
        if not len(ready):
            ready = _stuck(calls, pointer, last, members)
        if not len(ready):
            return result
        wave = _wave(calls, ready, rows_of, starts)
        result.append(wave)
        done[wave.rows] = True
        # The next calls of ranks: no rank is in a wave twice.
        moved = wave.rank
        moved = moved[done[pointer[moved]] & (pointer[moved] < last[moved])]
        going = moved
        while len(going):
            pointer[going] += 1
            # Calls that were computed out of order are skipped.
            going = going[(pointer[going] < last[going]) & done[pointer[going]]]
        moved = moved[pointer[moved] < last[moved]]


def _members(calls: JobCalls) -> tuple[Ints, Ints]:
    order = np.argsort(calls.collective, kind="stable")
    return order, np.r_[0, np.cumsum(np.bincount(calls.collective))]


def _wave(calls: JobCalls, collectives: Ints, rows_of: Ints, starts: Ints) -> Wave:
    size = starts[collectives + 1] - starts[collectives]
    begin = np.cumsum(size) - size
    member_of = np.repeat(np.arange(len(collectives)), size)
    rows = rows_of[np.repeat(starts[collectives] - begin, size) + np.arange(int(size.sum()))]
    return Wave(rows, calls.rank[rows], begin, member_of)


def _stuck(calls: JobCalls, pointer: Ints, last: Ints, members: Ints) -> Ints:
    """Where ranks started calls of several streams in other orders: the collective that is next on most members."""
    waiting = np.flatnonzero(pointer < last)
    if not len(waiting):
        return waiting
    at, count = np.unique(calls.collective[pointer[waiting]], return_counts=True)
    return at[[int(np.argmax(count / members[at]))]]


@dataclass(frozen=True, slots=True)
class Times:
    """Times to replay, a row per call (ns). ``joined`` False: no rank waits for a call."""

    paths: PathTimes
    transfer: Floats
    joined: bool = True


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """Times in ns.

    Attributes:
        step: mean step of the job, the longest rank's.
        of_rank: mean step of each rank.
        machine: its last round.
    """

    step: float
    of_rank: Floats
    machine: _JobMachine

    @property
    def hidden(self) -> Floats:
        """Of each call, how long its rank waits for others in it while the GPU works; 0 without launches."""
        return self.machine.by_call(self.machine.hidden)

    @property
    def stalled(self) -> Floats:
        """Of each call, how long its rank's GPU waits for its end."""
        return self.machine.by_call(self.machine.stalled)


class Course:
    """What all replays of a job have in common.

    Attributes:
        calls: as recorded.
        counted: the waves of the steps that count (`JobCalls.counted_steps`).
        rows: of the calls in them, in that order.
        leads, place: of each of ``rows``, `JobCalls.leads`, and the place of its stream among those of all ranks.
        in_order: whether the calls of each rank are computed one after the other.
    """

    def __init__(self, calls: JobCalls, order: Sequence[Wave]) -> None:
        self.calls, self.counted = calls, _later_waves(calls, order) if calls.paths.launches else order
        self.rows: Ints = np.concatenate([np.zeros(0, dtype=np.int64), *(wave.rows for wave in self.counted)])
        self.streams = int(calls.stream.max(initial=0)) + 1
        self.place = calls.rank[self.rows] * self.streams + calls.stream[self.rows]
        self.leads = calls.leads[self.rows]
        turn = np.full(len(calls.rank), -1, dtype=np.int64)
        turn[self.rows] = np.arange(len(self.rows))
        later = np.flatnonzero((turn[1:] < turn[:-1]) & (turn[1:] >= 0)) + 1
        self.in_order = bool(np.isin(later, calls.first).all())
        old = np.empty(len(calls.rank))
        for rank in range(calls.ranks):
            rows = calls.of_rank(rank)
            old[rows] = np.maximum.accumulate(calls.ready[rows])
        self._gaps: Floats = np.diff(old, prepend=0.0)
        self._gaps[calls.first[:-1][np.diff(calls.first) > 0]] = 0.0
        self._known: tuple[Floats, Floats] | None = None
        self._ready, self._block = _Moments.of(calls, old, calls.ready), _Moments.of(calls, old, calls.block)

    def ways(self, path: Floats) -> tuple[Floats, Floats, Floats]:
        """The way to each of ``rows`` along this path, from the call before it: that of the path, and none to subtract.

        Where calls are not computed in order, both are the way from the rank's first call, so that the state between
        two calls does not depend on which they are; and the whole way of each rank.
        """
        calls = self.calls
        if self.in_order:
            return path[self.rows], np.zeros(len(self.rows)), np.zeros(calls.ranks)
        whole = np.r_[0.0, np.cumsum(path * calls.counted)]
        begin = whole[calls.first]
        way = (whole[1:] - begin[:-1][calls.rank])[self.rows]
        return way, way, np.diff(begin)

    def overlap(self, gpu: Floats) -> Floats:
        """Own time from when a call is ready to where its rank waits for its end: the same work as recorded.

        Args:
            gpu: of each call, the GPU's work since the one before. Many replays have the same.
        """
        if self._known is not None and self._known[0] is gpu:
            return self._known[1]
        # Only differences within a rank count.
        new = np.cumsum(np.maximum(np.minimum(gpu, self._gaps), 0.0))
        result: Floats = np.maximum(self._block.among(new) - self._ready.among(new), 0.0)
        self._known = gpu, result
        return result


@dataclass(frozen=True, slots=True)
class _Moments:
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
    def of(calls: JobCalls, old: Floats, moments: Ints) -> _Moments:
        before, after = np.empty(len(old), dtype=np.int64), np.empty(len(old), dtype=np.int64)
        for rank in range(calls.ranks):
            rows = calls.of_rank(rank)
            before[rows] = np.maximum(np.searchsorted(old[rows], moments[rows], side="right") - 1, 0) + rows.start
            after[rows] = np.minimum(before[rows] + 1, rows.stop - 1)
        since, way = np.maximum(moments - old[before], 0.0), old[after] - old[before]
        share = np.divide(since, way, out=np.zeros(len(old)), where=way > 0)
        return _Moments(before, after, share, np.where(after == before, since, 0.0))

    def among(self, new: Floats) -> Floats:
        """The moments, when calls are ready at other ones."""
        return new[self.before] + self.share * (new[self.after] - new[self.before]) + self.beyond


def replay(course: Course, times: Times) -> ReplayedStep:
    """The step of a long training with these times."""
    machine = _JobMachine(course, times)
    before, length = machine.end, 0.0
    for _ in range(ROUNDS):
        last, before = length, machine.end.copy()
        machine.run()
        length = float((machine.end - before).max(initial=0.0))
        if abs(length - last) <= STEADY * length:
            break
    of_rank = (machine.end - before) / course.calls.counted_steps
    return ReplayedStep(float(of_rank.max(initial=0.0)), of_rank, machine)


def replay_as_recorded(course: Course, times: Times) -> float:
    """The mean step (ns) as `recorded_step` measures it, from the state in which the ranks began; see `replay`."""
    machine = _JobMachine(course, times)
    machine.begin_as_recorded()
    machine.run()
    return _mean_step(course.calls, machine.by_call(machine.stop))


def recorded_step(calls: JobCalls) -> float:
    """The mean step as recorded (ns), without the first one if there are several: in that ranks have not met yet.

    Where launches are recorded a step is from the end of a last call to that of the next.
    """
    return _mean_step(calls, calls.stop.astype(np.float64))


def _mean_step(calls: JobCalls, stop: Floats) -> float:
    """That of the longest rank, if its calls end then; what comes after a rank's last call is as recorded."""
    behind_first = calls.steps > 1 and bool((calls.step == 0).any())
    whole = (calls.length - calls.first_length * behind_first).astype(np.float64)
    for rank in range(calls.ranks):
        rows = calls.of_rank(rank)
        first = calls.step[rows] == 0
        recorded, late = _last(calls.stop[rows], first & behind_first), _last(stop[rows], first & behind_first)
        whole[rank] = late if calls.paths.launches else whole[rank] + late - recorded
    return float(whole.max(initial=0.0)) / max(calls.steps - behind_first, 1)


def _last(stop: Floats | Ints, first: Bools) -> float:
    """When the last call of a rank ends, counted from the last of the first step's where some are chosen."""
    return float(stop.max(initial=0)) - float(stop[first].max(initial=0))


class _JobMachine:
    """The state between rounds: the times of each rank's GPU and host at its last call, when its streams are free.

    Ranks may start calls of several streams in different orders: then calls are computed in another order than that of
    their rank (`Course.ways`).
    """

    def __init__(self, course: Course, times: Times) -> None:
        calls, rows = course.calls, course.rows
        self._course, self._times, self._hosts = course, times, calls.paths.launches
        self.gpu, self.host, self.end = np.zeros(calls.ranks), np.zeros(calls.ranks), np.zeros(calls.ranks)
        self._stream = np.zeros(calls.ranks * course.streams)
        self._overlap_of_all = course.overlap(times.paths.gpu)
        # In the order of computation, so that a wave reads what lies together.
        self._overlap, self._transfer = self._overlap_of_all[rows], times.transfer[rows]
        self._blocks: Bools = calls.blocks[rows] & times.joined
        self.hidden, self.stalled, self.stop = (np.zeros(len(rows)) for _ in range(3))
        self._to_gpu, self._gpu_back, self._gpu_way = course.ways(times.paths.gpu)
        if self._hosts:
            gpu, gpu_after_host, host, host_after_gpu = (column[rows] for column in times.paths.columns)
            self._to_host_after_gpu = self._to_gpu - gpu + host_after_gpu
            self._to_host, self._host_back, self._host_way = course.ways(times.paths.host)
            self._to_gpu_after_host = self._to_host - host + gpu_after_host

    def begin_as_recorded(self) -> None:
        """The state at the end of each rank's last call in the first step; without launches at the begin of that."""
        calls, times = self._course.calls, self._times
        if not calls.paths.launches:
            self.gpu = -calls.tail.astype(np.float64)
            return
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
        """The steps that count."""
        course, done = self._course, 0
        for wave in course.counted:
            here, rank = slice(done, done + len(wave.rows)), wave.rank
            done = here.stop
            place = course.place[here]
            gpu = self.gpu[rank]
            ready = gpu + self._to_gpu[here]
            start = self._stream[place]
            if self._hosts:
                host = self.host[rank]
                ready = np.maximum(ready, host + self._to_gpu_after_host[here])
                launched = np.maximum(host + self._to_host[here], gpu + self._to_host_after_gpu[here])
                self.host[rank] = launched - self._host_back[here]
                start = np.maximum(start, launched + LAUNCH_LATENCY_NS)
            start = np.maximum(ready, start)
            own = self._transfer[here]
            end = _ends(wave, start, course.leads[here], own) if self._times.joined else start + own
            self._stream[place] = end
            goes_on = ready + self._overlap[here]
            blocks = self._blocks[here]
            stalled = np.where(blocks, np.maximum(end - goes_on, 0.0), 0.0)
            self.gpu[rank] = ready + stalled - self._gpu_back[here]
            self.end[rank] = np.maximum(self.end[rank], end)
            if self._hosts:
                waited = np.maximum(end - own - start, 0)
                self.hidden[here] = np.where(blocks, np.minimum(np.maximum(goes_on - start, 0), waited), waited)
            self.stalled[here], self.stop[here] = stalled, end
        self.gpu += self._gpu_way
        if self._hosts:
            self.host += self._host_way

    def by_call(self, column: Floats) -> Floats:
        """A column of the calls that count in the order of all; 0 for the others."""
        result = np.zeros(len(self._course.calls.rank))
        result[self._course.rows] = column
        return result


def _ends(wave: Wave, start: Floats, leads: Bools, transfer: Floats) -> Floats:
    """When the calls of a wave end that start then: one transfer after the last member for which they wait.

    Args:
        wave: whose calls they are.
        start: of each of them.
        leads: `JobCalls.leads`.
        transfer: of the call's collective.
    """
    waited_for = np.where(leads, start, -np.inf)
    if len(wave.begin) == 1:
        end: Floats = np.maximum(start, waited_for.max()) + transfer[0]
    else:
        last = np.maximum.reduceat(waited_for, wave.begin)[wave.member_of]
        end = np.maximum(start, last) + transfer[wave.begin][wave.member_of]
    return end


def _later_waves(calls: JobCalls, order: Sequence[Wave]) -> list[Wave]:
    """The waves without the first step."""
    result: list[Wave] = []
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
