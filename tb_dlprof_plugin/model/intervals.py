"""Unions of time intervals and how much of a window they cover: DLProf's "flattening"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, Ints

Intervals = tuple[Ints, Ints]


class Spans(Protocol):
    """A table of things that take time: `HostEvents`, `Calls`, `Launches`."""

    @property
    def start_ns(self) -> Ints: ...
    @property
    def duration_ns(self) -> Ints: ...


def union(start_ns: Ints, stop_ns: Ints) -> Intervals:
    """Disjoint, sorted intervals that cover what the given ones cover; empty intervals vanish."""
    kept = stop_ns > start_ns
    start_ns, stop_ns = start_ns[kept], stop_ns[kept]
    if len(start_ns) == 0:
        return start_ns, stop_ns
    order = np.argsort(start_ns, kind="stable")
    start_ns = start_ns[order]
    reach = np.maximum.accumulate(stop_ns[order])
    opens = np.append(True, start_ns[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return start_ns[opens], reach[closes]


def union_of(table: Spans, rows: Bools | Ints | slice = slice(None)) -> Intervals:
    """When any of some rows of a table takes time; of all rows by default."""
    start_ns = table.start_ns[rows]
    return union(start_ns, start_ns + table.duration_ns[rows])


def merge(*unions: Intervals) -> Intervals:
    """The union of unions."""
    return union(np.concatenate([u[0] for u in unions]), np.concatenate([u[1] for u in unions]))


def covered(intervals: Intervals, window_start_ns: Ints, window_stop_ns: Ints) -> Ints:
    """How much of each window the disjoint intervals cover (ns)."""
    return _covered_until(intervals, window_stop_ns) - _covered_until(intervals, window_start_ns)


def exclusive(layers: Sequence[Intervals], window_start_ns: Ints, window_stop_ns: Ints) -> Ints:
    """How much of each window each layer covers that no earlier one does (ns), shape (windows, layers)."""
    result = np.zeros((len(window_start_ns), len(layers)), dtype=np.int64)
    so_far: Intervals = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    counted = np.zeros(len(window_start_ns), dtype=np.int64)
    for index, layer in enumerate(layers):
        so_far = merge(so_far, layer)
        reached = covered(so_far, window_start_ns, window_stop_ns)
        result[:, index] = reached - counted
        counted = reached
    return result


def _covered_until(intervals: Intervals, time_ns: Ints) -> Ints:
    start_ns, stop_ns = intervals
    if len(start_ns) == 0:
        return np.zeros(len(time_ns), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(stop_ns - start_ns)))
    index = np.searchsorted(start_ns, time_ns, side="right")
    inside = np.minimum(time_ns, stop_ns[np.maximum(index - 1, 0)]) - start_ns[np.maximum(index - 1, 0)]
    return np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0)
