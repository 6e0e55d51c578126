"""Finds the end of each iteration: when the CPU has left it and the GPU has finished its work.

The CPU queues work and runs ahead. Its own steps then are shorter than a step takes, until the queue is full or
something waits for the GPU: ten recorded AlexNet steps of 8 ms on the CPU kept an H200 busy for 29 ms each. Measured
from completion to completion, a step has the same length whether or not the CPU ran ahead, and what was queued before
the recording lies outside of all iterations.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Ints
from tb_dlprof_plugin.model.timeline import StepMarks, Timeline


def completion_windows(timeline: Timeline, steps: StepMarks, call: Ints, attribution: Ints) -> tuple[Ints, Ints]:
    """Start and stop of each iteration (ns), the GPU work that it launched included. Neighbours share their boundary.

    Args:
        timeline: the trace.
        steps: the iterations as the CPU ran them.
        call: per device event the row of its launching host event, -1 for none.
        attribution: per device event its `Attribution`.
    """
    device = timeline.device
    if not len(device) or steps.found_by == "none":
        return steps.start_ns, steps.stop_ns
    ends = device.start_ns + device.duration_ns
    launched_at = take_or(timeline.host.start_ns, call, -1)

    earlier = (attribution == Attribution.ORPHAN) | ((call >= 0) & (launched_at < steps.start_ns[0]))
    begin = max(int(steps.start_ns[0]), int(ends[earlier].max(initial=0)))
    done = np.zeros(len(steps.number), dtype=np.int64)
    index = np.searchsorted(steps.start_ns, launched_at, side="right") - 1
    inside = (call >= 0) & (index >= 0)
    inside[inside] = launched_at[inside] < steps.stop_ns[index[inside]]
    np.maximum.at(done, index[inside], ends[inside])
    stop = np.maximum.accumulate(np.maximum(np.maximum(steps.stop_ns, done), begin))
    # Where steps were left out between two recorded ones, the next begins with the CPU's own start.
    start = np.maximum(np.concatenate(([begin], stop[:-1])), steps.start_ns)
    return start, stop
