"""Replays the launches of a recording on a model of CPU threads and GPU streams, both in order.

A kernel starts when it was launched, its stream is free, and what it waits for on other streams is done; a launch waits
while the queue is full; a synchronising call waits until the GPU has done what it waits for. The CPU time in between is
given by the caller. Source of the idea: Zhu et al., *Daydream: Accurately Estimating the Efficacy of Optimizations for
DNN Training* (USENIX ATC 2020), which replays a dependency graph of CPU calls and kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

QUEUE_LENGTH = 1024
"""Launches that wait for the GPU before the next one blocks: measured by many, documented by none; HTA's queue length
analysis marks 1024 as the largest, and so many wait where recorded traces say "Command Buffer Full"."""
LAUNCH_LATENCY_NS = 3_000.0
"""From the launch call to the start of a kernel on an idle GPU, at least."""
WAIT, ALONE = -1, -2
"""In place of a stream: a wait for all streams, and work of the CPU alone. A wait for stream n is ``WAIT_FOR - n``, one
for the activity with mark n is ``WAIT_FOR_MARK - n``."""
WAIT_FOR, WAIT_FOR_MARK = -1_000, -1_000_000


Joins = Mapping[int, tuple[int, ...]]
"""Rows with the marks of the activities that they wait for as well."""


@dataclass(frozen=True, eq=False)
class Steps:
    """What the CPU does in iterations, one row after another.

    Attributes:
        at_ns: when the CPU reaches each row, from the start of the first iteration, without waits.
        stream: what is launched on, or what is waited for.
        gpu_ns: time of the activity.
        gap_ns: gap on its stream before the next one.
        lag_ns: by how much other streams delay its start.
        joins: what some rows wait for.
        queued: whether the launch takes a place in the queue: not the launches of a CUDA graph after its first.
        mark: number of an activity that others wait for by itself; -1 for the rest.
        thread: of the CPU; None where the threads never launch at the same time.
        resumes: where a thread continues after a wait for the others.
        begins: the row with which each iteration begins.
        starts_ns: when the CPU begins each iteration, and when it has finished the last, without waits.
    """

    at_ns: Floats
    stream: Ints
    gpu_ns: Floats
    gap_ns: Floats
    lag_ns: Floats
    joins: Joins
    queued: Bools
    mark: Ints
    thread: Ints | None
    resumes: Bools
    begins: Ints
    starts_ns: Floats


@dataclass(frozen=True, slots=True)
class Replayed:
    """Mean times of one iteration (ns): of the step, in which the busiest GPU works, of the CPU's own work."""

    step_ns: float
    gpu_ns: float
    host_ns: float


def replay(steps: Steps, device_of: Sequence[int], backlog_ns: float | None = None) -> Replayed:
    """The mean step, run one after another, from completion to completion.

    Args:
        steps: the iterations.
        device_of: the GPU of each stream.
        backlog_ns: remaining GPU work of earlier steps when the first begins. By default the first step
            is run once more before all, which fills the queue.
    """
    count = len(steps.begins)
    if not count:
        return Replayed(0.0, 0.0, 0.0)
    host_ns = float(steps.starts_ns[-1]) / count
    on_grid = replace(
        steps,
        at_ns=_on_grid(steps.at_ns),
        gpu_ns=_on_grid(steps.gpu_ns),
        gap_ns=_on_grid(steps.gap_ns),
        lag_ns=_on_grid(steps.lag_ns),
        starts_ns=_on_grid(steps.starts_ns),
    )
    machine = _Machine(on_grid, device_of, backlog_ns or 0.0)
    began = machine.run(0, 1) if backlog_ns is None else backlog_ns
    machine.busy = [0.0] * len(machine.busy)
    if steps.thread is None:
        completed = machine.run(0, count)
    else:
        # At the end of each, the threads wait for each other.
        completed = [machine.run(one, one + 1) for one in range(count)][-1]
    # A first iteration with much more GPU work than the others may even end after them; the CPU's own work remains.
    step_ns = (completed - began) / count
    return Replayed(
        max(step_ns, host_ns) if backlog_ns is None else step_ns, max(machine.busy, default=0.0) / count, host_ns
    )


_GRID = 65_536.0
"""Times are whole parts of a nanosecond, so many each: their sums are exact, in whatever order they are added, and two
ways to the same step give the same step."""
_MANY = 200
"""So many launches in a row are replayed as columns, which then takes less time than a row at a time."""
_FEW_JOINS = 3
"""Columns are computed once more for each launch that waits for another among them: with more, each one is replayed."""


def _on_grid(times: Floats) -> Floats:
    return np.asarray(np.rint(times * _GRID) / _GRID)


class _Machine:
    """The state between iterations: the CPU's time, when streams are free, what is queued."""

    def __init__(self, steps: Steps, device_of: Sequence[int], free_ns: float) -> None:
        self._steps = steps
        self._devices = np.array(device_of, dtype=np.int64)
        streams = len(device_of)
        self._now = 0.0
        self._free = [free_ns] * streams
        self._stop = [free_ns] * streams
        self._reached = [free_ns] * (int(self._devices.max(initial=0)) + 1)
        self.busy = [0.0] * len(self._reached)
        # Ends of what was queued, each no sooner than the ones before it: the queue's front is what the CPU waits for.
        self._ends: list[float] = [0.0] * QUEUE_LENGTH
        self._marks: dict[int, float] = {}
        self._waiting = np.sort(np.fromiter(steps.joins, np.int64, len(steps.joins)))
        self._turns = self._found_turns()
        self._launches = self._found_launches()
        self._special = self._turns.keys() | steps.joins.keys()
        # By how much waits delay the CPU, by thread and the current one; the first row whose end counts, the last end.
        self._late, self._lates, self._thread = 0.0, dict[int, float](), -1
        self._last, self._done = 0, 0.0

    def _found_turns(self) -> dict[int, tuple[int, bool]]:
        """The rows of another thread than the one before, or one that resumes: the thread, and whether it resumes."""
        steps = self._steps
        if steps.thread is None:
            return {}
        before = np.concatenate(([-1], steps.thread[:-1]))
        first = np.zeros(len(before), dtype=np.bool_)
        first[steps.begins[steps.begins < len(before)]] = True
        rows = np.flatnonzero(first | (steps.thread != before) | steps.resumes)
        threads, resume = steps.thread[rows].tolist(), steps.resumes[rows].tolist()
        return dict(zip(rows.tolist(), zip(threads, resume, strict=True), strict=True))

    def _found_launches(self) -> list[tuple[int, int]]:
        """Rows from one to another that are only launched: many, no more than the queue holds, all of the first
        iteration or none."""
        steps = self._steps
        alone = steps.stream < 0
        alone[list(self._turns)] = True
        edges = np.flatnonzero(np.concatenate(([True], alone)) != np.concatenate((alone, [True])))
        second = int(steps.begins[1]) if len(steps.begins) > 1 else 0
        found: list[tuple[int, int]] = []
        for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            middle = second if first < second < stop else first
            for begin, end in ((first, middle), (middle, stop)):
                if end - begin >= _MANY:
                    found += [(some, min(some + QUEUE_LENGTH, end)) for some in range(begin, end, QUEUE_LENGTH)]
        if not len(self._waiting):
            return found
        joins = np.diff(np.searchsorted(self._waiting, np.array(found, dtype=np.int64).reshape(-1, 2)), axis=1)[:, 0]
        return [one for one, count in zip(found, joins.tolist(), strict=True) if count <= _FEW_JOINS]

    def run(self, first: int, stop: int) -> float:
        """Runs iterations from one to another; when the CPU and the GPUs have done all of the last."""
        steps = self._steps
        begins = [*steps.begins.tolist(), len(steps.at_ns)]
        self._done, self._last = self._now, begins[stop - 1]
        self._late = self._now - float(steps.starts_ns[first])
        self._lates, self._thread = {}, -1
        row = begins[first]
        for begin, end in self._launches:
            if row <= begin and end <= begins[stop]:
                self._single(row, begin)
                self._launch(begin, end)
                row = end
        self._single(row, begins[stop])
        late = max(self._late, *self._lates.values()) if self._lates else self._late
        self._now = float(steps.starts_ns[stop]) + late
        del self._ends[:-QUEUE_LENGTH]
        return max(self._done, self._now)

    def _launch(self, first: int, stop: int) -> None:
        """Launches, no more than the queue holds: what `_single` does, by columns."""
        steps, rows = self._steps, slice(first, stop)
        at, streams, gpu, queued = steps.at_ns[rows], steps.stream[rows], steps.gpu_ns[rows], steps.queued[rows]
        places = np.flatnonzero(queued)
        full = np.array(self._ends[-QUEUE_LENGTH:])[: len(places)]
        late = np.full(len(at), self._late)
        late[places] = np.maximum(self._late, full - at[places])
        late = np.maximum.accumulate(late)
        starts, works = at + late + LAUNCH_LATENCY_NS, steps.lag_ns[rows] + gpu
        taken = works + steps.gap_ns[rows]
        own = list(rows_of_each(streams))
        earlier = [np.cumsum(taken[mine]) - taken[mine] for _, mine in own]
        waiting, other = self._joined(first, stop, starts)
        begun = np.empty(len(at))
        for _ in range(len(waiting) + 1):
            for (stream, mine), before in zip(own, earlier, strict=True):
                # One begins when it may, or after one before it has begun when it may, and all in between.
                begun[mine] = before + np.maximum(np.maximum.accumulate(starts[mine] - before), self._free[stream])
            ends = begun + works
            if not (ends[other] > begun[waiting]).any():
                break
            np.maximum.at(starts, waiting, ends[other])
        self._late = float(late[-1])
        for stream, mine in own:
            self._stop[stream], self._free[stream] = float(ends[mine][-1]), float((begun + taken)[mine][-1])
        self._ends += np.maximum(np.maximum.accumulate(ends[queued]), self._ends[-1]).tolist()
        marked = np.flatnonzero(steps.mark[rows] >= 0)
        self._marks.update(zip(steps.mark[rows][marked].tolist(), ends[marked].tolist(), strict=True))
        self._count(np.arange(first, stop), ends)

    def _count(self, rows: Ints, ends: Floats) -> None:
        """Adds the work that launches give to the GPUs."""
        self._done = max(self._done, float(ends[np.searchsorted(rows, self._last) :].max(initial=0.0)))
        gpu = self._steps.gpu_ns[rows]
        for device, mine in rows_of_each(self._devices[self._steps.stream[rows]]):
            reached = np.maximum.accumulate(np.concatenate(([self._reached[device]], ends[mine])))
            self.busy[device] += float(np.minimum(gpu[mine], np.diff(reached)).sum())
            self._reached[device] = float(reached[-1])

    def _joined(self, first: int, stop: int, starts: Floats) -> tuple[Ints, Ints]:
        """Of what rows wait for: pairs of a row and the one that it waits for, both from ``first`` on. Where that was
        launched before, ``starts`` is as late as its end."""
        waiting: list[int] = []
        others: list[int] = []
        for row in self._waiting[slice(*np.searchsorted(self._waiting, (first, stop)))].tolist():
            for mark in self._steps.joins[row]:
                before = np.flatnonzero(self._steps.mark[first:row] == mark)
                if len(before):
                    waiting.append(row - first)
                    others.append(int(before[-1]))
                else:
                    starts[row - first] = max(starts[row - first], self._marks.get(mark, 0.0))
        return np.array(waiting, dtype=np.int64), np.array(others, dtype=np.int64)

    def _single(self, first: int, stop: int) -> None:
        if first == stop:
            return
        steps, rows, turns = self._steps, slice(first, stop), self._turns
        free, stopped, ends, marks, joins = self._free, self._stop, self._ends, self._marks, steps.joins
        late, lates, thread = self._late, self._lates, self._thread
        latest, special = ends[-1], self._special
        ended: list[float] = []
        for row, at, stream, work, gap, queued, mark in zip(
            range(first, stop),
            steps.at_ns[rows].tolist(),
            steps.stream[rows].tolist(),
            (steps.lag_ns[rows] + steps.gpu_ns[rows]).tolist(),
            steps.gap_ns[rows].tolist(),
            steps.queued[rows].tolist(),
            steps.mark[rows].tolist(),
            strict=True,
        ):
            others: Sequence[int] = ()
            if row in special:
                others = joins.get(row, ())
                if row in turns:
                    own, resumes = turns[row]
                    lates[thread] = late
                    late = max(lates.values()) if resumes or own not in lates else lates[own]
                    thread = own
            if stream >= 0:
                start = at + late
                if queued:
                    full = ends[-QUEUE_LENGTH]
                    if full > start:
                        start = full
                        late = full - at
                start += LAUNCH_LATENCY_NS
                if free[stream] > start:
                    start = free[stream]
                if others:
                    for other in others:
                        until = marks.get(other, 0.0)
                        if until > start:
                            start = until
                end = start + work
                stopped[stream] = end
                free[stream] = end + gap
                ended.append(end)
                if queued:
                    if end > latest:
                        latest = end
                    ends.append(latest)
                if mark >= 0:
                    marks[mark] = end
            elif stream != ALONE:
                if stream == WAIT:
                    until = max(stopped) if stopped else 0.0
                elif stream > WAIT_FOR_MARK:
                    until = stopped[WAIT_FOR - stream]
                else:
                    until = marks.get(WAIT_FOR_MARK - stream, 0.0)
                if until > at + late:
                    late = until - at
        self._late, self._thread = late, thread
        launched = first + np.flatnonzero(steps.stream[rows] >= 0)
        self._count(launched, np.array(ended))
