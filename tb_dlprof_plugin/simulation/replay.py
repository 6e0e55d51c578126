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
        # Only when the last one is done matters.
        machine.run(0, count - 1)
        completed = machine.run(count - 1, count)
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
"""So many launches in a row are replayed as columns, which then takes less time than one by one."""
_FEW_JOINS = 3
"""Columns are computed once more for each launch that waits for another among them: with more, each one is replayed."""


def _on_grid(times: Floats) -> Floats:
    return np.asarray(np.rint(times * _GRID) / _GRID)


class _Machine:
    """The state between iterations: the CPU's time, when streams are free, what is queued."""

    def __init__(self, steps: Steps, device_of: Sequence[int], free_ns: float) -> None:
        self._steps = steps
        self._device_of = list(device_of)
        streams = len(self._device_of)
        self._now = 0.0
        self._free = [free_ns] * streams
        self._stop = [free_ns] * streams
        self._reached = [free_ns] * (max(self._device_of, default=0) + 1)
        self.busy = [0.0] * len(self._reached)
        # Ends of what was queued, each no sooner than the ones before it: the queue's front is what the CPU waits for.
        self._ends: list[float] = [0.0] * QUEUE_LENGTH
        self._marks: dict[int, float] = {}
        self._waiting = np.sort(np.fromiter(steps.joins, np.int64, len(steps.joins)))
        self._turns = self._found_turns()
        # By how much waits delay the CPU, by thread and the current one; the last end.
        self._late, self._lates, self._thread = 0.0, dict[int, float](), -1
        self._done = 0.0

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

    def run(self, first: int, stop: int) -> float:
        """Runs iterations from one to another; when the CPU and the GPUs have done all of it."""
        steps = self._steps
        self._done = self._now
        self._late = self._now - float(steps.starts_ns[first])
        self._lates, self._thread = {}, -1
        row, until = (int(steps.begins[one]) if one < len(steps.begins) else len(steps.at_ns) for one in (first, stop))
        alone = steps.stream[row:until] < 0
        alone[[one - row for one in self._turns if row <= one < until]] = True
        edges = (row + np.flatnonzero(np.diff(alone, prepend=True, append=True))).tolist()
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            if end - begin >= _MANY:
                for some in range(begin, end, QUEUE_LENGTH):
                    beyond = min(some + QUEUE_LENGTH, end)
                    joins = np.diff(np.searchsorted(self._waiting, (some, beyond)))[0]
                    if joins <= _FEW_JOINS:
                        self._single(row, some)
                        self._launch(some, beyond)
                        row = beyond
        self._single(row, until)
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
        own = [(stream, np.flatnonzero(streams == stream)) for stream in np.unique(streams).tolist()]
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
            self._stop[stream], self._free[stream] = float(ends[mine[-1]]), float((begun + taken)[mine[-1]])
        self._ends += np.maximum(np.maximum.accumulate(ends[queued]), self._ends[-1]).tolist()
        self._done = max(self._done, float(ends.max()))
        devices = np.asarray(self._device_of)[streams]
        for device in np.unique(devices).tolist():
            mine = np.flatnonzero(devices == device)
            reached = np.maximum.accumulate(np.concatenate(([self._reached[device]], ends[mine])))
            self.busy[device] += float(np.minimum(gpu[mine], np.diff(reached)).sum())
            self._reached[device] = float(reached[-1])
        marked = np.flatnonzero(steps.mark[rows] >= 0)
        self._marks.update(zip(steps.mark[rows][marked].tolist(), ends[marked].tolist(), strict=True))

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
        steps, rows, turns = self._steps, slice(first, stop), self._turns
        free, stopped, ends, marks, joins = self._free, self._stop, self._ends, self._marks, steps.joins
        reached, busy, device_of = self._reached, self.busy, self._device_of
        late, lates, thread = self._late, self._lates, self._thread
        latest, done = ends[-1], self._done
        for row, at, stream, gpu, gap, lag, queued, mark in zip(
            range(first, stop),
            steps.at_ns[rows].tolist(),
            steps.stream[rows].tolist(),
            steps.gpu_ns[rows].tolist(),
            steps.gap_ns[rows].tolist(),
            steps.lag_ns[rows].tolist(),
            steps.queued[rows].tolist(),
            steps.mark[rows].tolist(),
            strict=True,
        ):
            if row in turns:
                own, resumes = turns[row]
                lates[thread] = late
                late = max(lates.values()) if resumes or own not in lates else lates[own]
                thread = own
            if stream >= 0:
                host = at + late
                if queued:
                    full = ends[-QUEUE_LENGTH]
                    if full > host:
                        host = full
                        late = host - at
                start = host + LAUNCH_LATENCY_NS
                if free[stream] > start:
                    start = free[stream]
                for other in joins.get(row, ()):
                    until = marks.get(other, 0.0)
                    if until > start:
                        start = until
                end = start + lag + gpu
                stopped[stream] = end
                free[stream] = end + gap
                if queued:
                    latest = end if end > latest else latest
                    ends.append(latest)
                if end > done:
                    done = end
                device = device_of[stream]
                before = reached[device]
                if end > before:
                    busy[device] += gpu if gpu < end - before else end - before
                    reached[device] = end
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
        self._late, self._thread, self._done = late, thread, done
