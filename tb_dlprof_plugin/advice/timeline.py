"""Launches played on whole columns: a CPU that launches in order, streams that work in order.

The model is that of `simulation.replay` without its limit on the queue, which changes no mean step; whole
stretches between two waits are played at once, so that a rule can ask for several replays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.simulation.replay import LAUNCH_LATENCY_NS, WAIT
from tb_dlprof_plugin.storage.model import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Timeline:
    """Launches and waits by iteration and CPU time (ns).

    ``bounds`` are the first rows of the iterations, and behind them the number of rows. ``stream`` is `WAIT` for a
    wait; ``gap_ns`` follows the work of a launch on its stream. A launch that is not in ``runs`` does not take place.
    ``begin_ns`` and ``end_ns`` are the CPU's, of each iteration.
    """

    bounds: Ints
    host_ns: Floats
    stream: Ints
    gpu_ns: Floats
    gap_ns: Floats
    runs: Bools
    begin_ns: Floats
    end_ns: Floats


@dataclass(frozen=True, slots=True)
class Replayed:
    """Means per step (ns): of the step, of the GPU's work on its busiest stream, of the CPU's own work."""

    step_ns: float
    gpu_ns: float
    cpu_ns: float


def play(line: Timeline) -> Replayed:
    """The mean step, from completion to completion; the first iteration only fills the queue where there are more."""
    at, cpu = 0.0, 0.0
    free: dict[int, float] = {}
    busy: dict[int, float] = {}
    completions: list[float] = []
    iterations = len(line.bounds) - 1
    several = iterations > 1
    for number in range(iterations):
        rows = slice(int(line.bounds[number]), int(line.bounds[number + 1]))
        counted = number > 0 or not several
        origin = float(line.begin_ns[number])
        host = np.maximum.accumulate(np.maximum(line.host_ns[rows], origin))
        stream, work, gap, runs = line.stream[rows], line.gpu_ns[rows], line.gap_ns[rows], line.runs[rows]
        last = max(float(line.end_ns[number]), float(host[-1]) if len(host) else origin)
        shift, done, first = at - origin, at, 0
        for cut in [*np.flatnonzero(stream == WAIT).tolist(), len(stream)]:
            for which in np.unique(stream[first:cut]).tolist():
                mine = first + np.flatnonzero((stream[first:cut] == which) & runs[first:cut])
                if not len(mine):
                    continue
                whole = work[mine] + gap[mine]
                earlier = np.cumsum(whole) - whole
                ready = host[mine] + shift + LAUNCH_LATENCY_NS
                ready[0] = max(ready[0], free.get(which, 0.0))
                start = np.maximum.accumulate(ready - earlier) + earlier
                free[which] = float(start[-1] + whole[-1])
                done = max(done, float(start[-1] + work[mine][-1]))
                if counted:
                    busy[which] = busy.get(which, 0.0) + float(work[mine].sum())
            if cut < len(stream):
                shift = max(shift, max(free.values(), default=0.0) - float(host[cut]))
            first = cut + 1
        at = last + shift
        if counted:
            cpu += last - origin
        completions.append(max(done, at))
    count = iterations - 1 if several else 1
    span = completions[-1] - completions[0] if several else completions[0]
    return Replayed(max(span, cpu) / count, max(busy.values(), default=0.0) / count, cpu / count)
