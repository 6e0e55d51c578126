"""Runs the launches of a recording again: a CPU that launches in order, and GPU streams that work in order.

A kernel starts when it was launched and its stream is free; a launch waits while the queue is full; a synchronising
call waits until the GPU has done all that was launched. What the CPU did in between takes the time that it took, or
that the caller says. Source of the idea: Zhu et al., *Daydream: Accurately Estimating the Efficacy of Optimizations for
DNN Training* (USENIX ATC 2020), which replays a dependency graph of CPU calls and kernels.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

QUEUE_LENGTH = 1024
"""Launches that wait for the GPU before the next one blocks: measured by many, documented by none; HTA's queue length
analysis marks 1024 as the largest."""
LAUNCH_LATENCY_NS = 3_000.0
"""From the launch call to the start of a kernel on an idle GPU, at least."""


@dataclass(frozen=True, slots=True)
class Event:
    """What the CPU does next: ``host_ns`` of its own work, then it launches ``gpu_ns`` on ``stream`` or waits.

    ``stream`` is -1 for a call that waits for all of the GPU's work, and -2 for work of the CPU alone.
    """

    host_ns: float
    gpu_ns: float
    stream: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """Times of one iteration (ns): of the step, of the GPU's work, of the CPU's own work."""

    step_ns: float
    gpu_ns: float
    host_ns: float


WAIT, ALONE = -1, -2


def replay(iterations: list[list[Event]], gap_ns: float = 0.0) -> Replayed:
    """The mean step of the iterations, run one after another, from completion to completion.

    ``gap_ns`` is what a stream needs between two kernels that wait for it.

    The first iteration only fills the queue, where there is more than one.
    """
    host = 0.0
    free: dict[int, float] = {}
    queue: deque[float] = deque()
    completions = []
    gpu_ns = host_ns = 0.0
    for number, events in enumerate(iterations):
        done = host
        counted = number > 0 or len(iterations) == 1
        for event in events:
            host += event.host_ns
            if counted:
                host_ns += event.host_ns
            if event.stream == WAIT:
                host = max([host, *free.values()])
            elif event.stream != ALONE:
                while queue and queue[0] <= host:
                    queue.popleft()
                if len(queue) >= QUEUE_LENGTH:
                    host = max(host, queue.popleft())
                start = max(host + LAUNCH_LATENCY_NS, free.get(event.stream, 0.0))
                stop = start + event.gpu_ns
                free[event.stream] = stop + gap_ns
                # Streams finish out of order now and then; the queue's front is what the CPU waits for.
                queue.append(max(stop, queue[-1]) if queue else stop)
                done = max(done, stop)
                if counted:
                    gpu_ns += event.gpu_ns
        completions.append(max(done, host))
    if len(completions) == 1:
        return Replayed(completions[0], gpu_ns, host_ns)
    count = len(completions) - 1
    # A first iteration with much more GPU work than the others may even end after them; the CPU's own work remains.
    step_ns = max((completions[-1] - completions[0]) / count, host_ns / count)
    return Replayed(step_ns, gpu_ns / count, host_ns / count)
