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
    if not kept.all():
        start_ns, stop_ns = start_ns[kept], stop_ns[kept]
    if len(start_ns) == 0:
        return start_ns, stop_ns
    order = np.argsort(start_ns, kind="stable")
    start_ns, reach = start_ns[order], stop_ns[order]
    # Of millions of calls each column counts.
    del order
    np.maximum.accumulate(reach, out=reach)
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


def covered_by_others(group: Ints, start_ns: Ints, stop_ns: Ints, rows: Ints, begin_ns: Ints, end_ns: Ints) -> Ints:
    """How much of a window of each of ``rows`` intervals of other groups than its own cover (ns).

    As `covered` by the union of all others for each group, in one pass over time however many groups there are.

    Args:
        group: of each interval.
        start_ns: of each interval.
        stop_ns: of each interval.
        rows: intervals whose group does not count.
        begin_ns: of the window of each of them.
        end_ns: of the window of each of them.
    """
    if not len(start_ns):
        return np.zeros(len(rows), dtype=np.int64)
    number = np.unique(group, return_inverse=True)[1].reshape(-1)
    first, last = int(start_ns.min()), int(stop_ns.max())
    # Each group's time follows on that of the group before: so one call is about all groups.
    shift = number * (last - first + 1) - first
    of_groups = union(start_ns + shift, stop_ns + shift)
    one, begins = np.divmod(of_groups[0], last - first + 1)
    time = np.concatenate((begins, begins + of_groups[1] - of_groups[0]))
    opens = np.repeat([1, -1], len(one))
    order = np.argsort(time, kind="stable")
    time, running = time[order] + first, np.cumsum(opens[order])
    # Where one group runs, the sum of the numbers of running groups is its number.
    which = np.cumsum((opens * np.concatenate((one, one)))[order])
    alone = np.flatnonzero(running[:-1] == 1)
    alone = alone[np.argsort(which[alone], kind="stable")]
    moved = which[alone] * (last - first + 1) - first
    own = (time[alone] + moved, time[alone + 1] + moved)
    begin_ns, end_ns = np.clip(begin_ns, first, last), np.clip(end_ns, first, last)
    every = covered(union(start_ns, stop_ns), begin_ns, end_ns)
    return every - covered(own, begin_ns + shift[rows], end_ns + shift[rows])


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
