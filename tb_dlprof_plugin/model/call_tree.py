"""Nesting of host events: the depth of each event within its thread."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.tree import parents

_NEVER = np.iinfo(np.int64).max


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
    starts, stops = host.start_ns, host.start_ns + host.duration_ns
    depth = [
        _depths_of_thread(starts[first:last], stops[first:last])
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    return np.concatenate(depth) if depth else np.zeros(0, dtype=np.int64)


def _depths_of_thread(starts: Ints, stops: Ints) -> Ints:
    """By columns where the events nest, which the result shows; with a stack where any cross."""
    ended = np.searchsorted(np.sort(stops), starts, side="right")
    empty = starts == stops
    if empty.any():
        # Events without a length: later ones of the same moment have not ended before it.
        of_moment = np.searchsorted(starts, starts, side="right") - 1
        count = np.cumsum(empty)
        ended -= count[of_moment] - count + empty
    depth: Ints = np.arange(len(starts)) - ended
    if (np.diff(starts) >= 0).all() and (depth >= 0).all():
        parent = parents(depth)
        if (stops <= np.where(parent >= 0, stops[parent], _NEVER)).all():
            return depth
    return np.array(_depths_by_stack(starts.tolist(), stops.tolist()), dtype=np.int64)


def _depths_by_stack(starts: list[int], stops: list[int]) -> list[int]:
    depth: list[int] = []
    # The sentinel contains everything.
    around = [1 << 63]
    for start, stop in zip(starts, stops, strict=True):
        while start >= around[-1] or stop > around[-1]:
            around.pop()
        depth.append(len(around) - 1)
        around.append(stop)
    return depth
