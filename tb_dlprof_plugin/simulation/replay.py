"""Replays the launches of a recording on a model of CPU threads and GPU streams, both in order.

A kernel starts when it was launched, its stream is free, and what it waits for on other streams is done; a launch waits
while the queue is full; a synchronising call waits until the GPU has done what it waits for. The CPU time in between is
given by the caller. Source of the idea: Zhu et al., *Daydream: Accurately Estimating the Efficacy of Optimizations for
DNN Training* (USENIX ATC 2020), which replays a dependency graph of CPU calls and kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Step:
    """What the CPU does in one iteration, one row after another.

    Attributes:
        at_ns: when the CPU reaches each row, from the start of the iteration, without waits.
        stream: what is launched on, or what is waited for.
        gpu_ns: time of the activity.
        gap_ns: gap on its stream before the next one.
        lag_ns: by how much other streams delay its start.
        joins: per row the marks of the activities that it waits for as well; None for none.
        queued: whether the launch takes a place in the queue: not the launches of a CUDA graph after its first.
        mark: number of an activity that others wait for by itself; -1 for the rest.
        thread: of the CPU; None where the threads never launch at the same time.
        resumes: where a thread continues after a wait for the others.
        end_ns: when the CPU has finished the iteration, without waits.
    """

    at_ns: Floats
    stream: Ints
    gpu_ns: Floats
    gap_ns: Floats
    lag_ns: Floats
    joins: Sequence[tuple[int, ...] | None]
    queued: Bools
    mark: Ints
    thread: Ints | None
    resumes: Bools
    end_ns: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """Mean times of one iteration (ns): of the step, in which the busiest GPU works, of the CPU's own work."""

    step_ns: float
    gpu_ns: float
    host_ns: float


def replay(steps: Sequence[Step], device_of: Sequence[int], backlog_ns: float | None = None) -> Replayed:
    """The mean step, run one after another, from completion to completion.

    Args:
        steps: the iterations.
        device_of: the GPU of each stream.
        backlog_ns: remaining GPU work of earlier steps when the first begins. By default the first step
            is run once more before all, which fills the queue.
    """
    if not steps:
        return Replayed(0.0, 0.0, 0.0)
    machine = _Machine(device_of, backlog_ns or 0.0)
    began = machine.run(steps[0]) if backlog_ns is None else backlog_ns
    machine.busy = [0.0] * len(machine.busy)
    completed = began
    for step in steps:
        completed = machine.run(step)
    count = len(steps)
    host_ns = sum(step.end_ns for step in steps) / count
    # A first iteration with much more GPU work than the others may even end after them; the CPU's own work remains.
    step_ns = (completed - began) / count
    return Replayed(
        max(step_ns, host_ns) if backlog_ns is None else step_ns, max(machine.busy, default=0.0) / count, host_ns
    )


def _turns(step: Step) -> list[tuple[int, bool] | None]:
    """Per row its thread and whether that resumes, where it is another thread than before or one that resumes."""
    turns: list[tuple[int, bool] | None] = [None] * len(step.at_ns)
    if step.thread is not None:
        before = np.concatenate(([-1], step.thread[:-1]))
        for row in np.flatnonzero((step.thread != before) | (step.resumes & (before >= 0))).tolist():
            turns[row] = int(step.thread[row]), bool(step.resumes[row])
    return turns


class _Machine:
    """The state between iterations: the CPU's time, when streams are free, what is queued."""

    def __init__(self, device_of: Sequence[int], free_ns: float) -> None:
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

    def run(self, step: Step) -> float:
        """Runs an iteration; when the CPU and the GPUs have done all of it."""
        free, stop, ends, marks = self._free, self._stop, self._ends, self._marks
        reached, busy, device_of = self._reached, self.busy, self._device_of
        origin = late = self._now
        lates: dict[int, float] = {}
        latest, done = ends[-1], origin
        thread = -1
        for at, stream, gpu, gap, lag, others, queued, mark, turn in zip(
            step.at_ns.tolist(),
            step.stream.tolist(),
            step.gpu_ns.tolist(),
            step.gap_ns.tolist(),
            step.lag_ns.tolist(),
            step.joins,
            step.queued.tolist(),
            step.mark.tolist(),
            _turns(step),
            strict=True,
        ):
            if turn is not None:
                own, resumes = turn
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
                if others is not None:
                    for other in others:
                        until = marks.get(other, 0.0)
                        if until > start:
                            start = until
                end = start + lag + gpu
                stop[stream] = end
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
                    until = max(stop) if stop else 0.0
                elif stream > WAIT_FOR_MARK:
                    until = stop[WAIT_FOR - stream]
                else:
                    until = marks.get(WAIT_FOR_MARK - stream, 0.0)
                if until > at + late:
                    late = until - at
        late = max(late, *lates.values()) if lates else late
        self._now = step.end_ns + late
        del ends[:-QUEUE_LENGTH]
        return max(done, self._now)
