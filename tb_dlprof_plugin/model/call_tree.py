"""Nesting of host events: the depth of each event within its thread."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tb_dlprof_plugin.model.profile import Ints


class HostSpans(Protocol):
    """Events on CPU threads, by thread, start and falling duration: `HostEvents`."""

    @property
    def thread(self) -> Ints: ...
    @property
    def start_ns(self) -> Ints: ...
    @property
    def duration_ns(self) -> Ints: ...


def depths(host: HostSpans) -> Ints:
    """Depth of each event; 0 for a thread's outermost events.

    An event is a child of the innermost earlier event that contains it whole. This is the rule by which
    ``torch.autograd.profiler_util.EventList`` builds its tree, so that self times agree with ``key_averages()``.
    """
    bounds = np.flatnonzero(np.diff(host.thread, prepend=-1, append=-1))
    starts = host.start_ns.tolist()
    stops = (host.start_ns + host.duration_ns).tolist()
    depth: list[int] = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        depth += _depths_of_thread(starts[first:last], stops[first:last])
    return np.array(depth, dtype=np.int64)


def _depths_of_thread(starts: list[int], stops: list[int]) -> list[int]:
    """The one loop over all events of the analysis: a plain stack, because nesting of crossing events cannot be
    computed column-wise."""
    depth: list[int] = []
    # The sentinel contains everything.
    around = [1 << 63]
    for start, stop in zip(starts, stops, strict=True):
        while start >= around[-1] or stop > around[-1]:
            around.pop()
        depth.append(len(around) - 1)
        around.append(stop)
    return depth
