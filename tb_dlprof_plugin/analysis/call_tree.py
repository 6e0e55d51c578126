"""Nesting of host events: the depth of each event within its thread."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.storage.model import Ints
from tb_dlprof_plugin.trace.timeline import HostEvents


def depths(host: HostEvents) -> Ints:
    """Depth of each event; 0 for a thread's outermost events.

    An event is a child of the innermost earlier event that contains it whole. This is the rule by which
    ``torch.autograd.profiler_util.EventList`` builds its tree, so that self times agree with ``key_averages()``.
    """
    result = np.zeros(len(host), dtype=np.int64)
    stops: list[int] = []
    thread = -1
    rows = zip(host.thread.tolist(), host.start_ns.tolist(), host.duration_ns.tolist(), strict=True)
    for row, (event_thread, start, duration) in enumerate(rows):
        if event_thread != thread:
            thread = event_thread
            stops.clear()
        stop = start + duration
        while stops and (start >= stops[-1] or stop > stops[-1]):
            stops.pop()
        result[row] = len(stops)
        stops.append(stop)
    return result
