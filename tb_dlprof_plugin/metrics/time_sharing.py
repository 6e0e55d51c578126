"""Divides wall time among activities that overlap: each moment belongs to exactly one.

Layers are ordered by falling precedence. A moment belongs to the first layer in which anything runs, and in it to what
began first. So what is shared out never exceeds the window, and layers sum to what `model.intervals.exclusive` gives
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge, union
from tb_dlprof_plugin.model.profile import Ints


@dataclass(frozen=True, slots=True)
class TimeShares:
    """``ns`` of ``window`` belong to the row ``row`` of the layer's table; rows that got nothing are missing."""

    row: Ints
    window: Ints
    ns: Ints


@dataclass(frozen=True, slots=True)
class Pieces:
    """Disjoint, sorted intervals, each the part of one row of a table within one window."""

    row: Ints
    window: Ints
    start_ns: Ints
    stop_ns: Ints


def share_out(layers: Sequence[tuple[Ints, Ints]], windows: tuple[Ints, Ints]) -> tuple[list[TimeShares], Intervals]:
    """The shares of each layer, and the union of all intervals.

    Args:
        layers: starts and stops of each layer's rows (ns), in any order.
        windows: starts and stops (ns), sorted and disjoint.
    """
    nothing = np.zeros(0, dtype=np.int64)
    before: Intervals = (nothing, nothing)
    result = []
    for start, stop in layers:
        pieces = cut(disjoint(start, stop), windows)
        ns = pieces.stop_ns - pieces.start_ns - covered(before, pieces.start_ns, pieces.stop_ns)
        kept = ns > 0
        result.append(TimeShares(pieces.row[kept], pieces.window[kept], ns[kept]))
        before = merge(before, union(start, stop))
    return result, before


def disjoint(start_ns: Ints, stop_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """Row, start and stop of what each interval adds to those that began before it, sorted by start."""
    order = np.argsort(start_ns, kind="stable")
    start, stop = start_ns[order], stop_ns[order]
    reach = np.maximum.accumulate(stop) if len(stop) else stop
    start = np.maximum(start, np.concatenate((start[:1], reach[:-1])))
    kept = stop > start
    return order[kept], start[kept], stop[kept]


def cut(intervals: tuple[Ints, Ints, Ints], windows: tuple[Ints, Ints]) -> Pieces:
    """Rows with their disjoint, sorted intervals, cut at the windows' boundaries; what lies in no window vanishes."""
    row, start, stop = intervals
    begins, ends = windows
    first = np.searchsorted(ends, start, side="right")
    last = np.searchsorted(begins, stop, side="left") - 1
    count = np.maximum(last - first + 1, 0)
    source = np.repeat(np.arange(len(row), dtype=np.int64), count)
    window = first[source] + np.arange(len(source), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
    return Pieces(
        row[source], window, np.maximum(start[source], begins[window]), np.minimum(stop[source], ends[window])
    )


def gaps(busy: Intervals, windows: tuple[Ints, Ints]) -> Pieces:
    """The moments of each window outside the disjoint, sorted intervals; ``row`` is the window's."""
    nothing = np.array([], dtype=np.int64)
    starts, stops = busy
    edges = np.array([np.iinfo(np.int64).min // 2, np.iinfo(np.int64).max // 2], dtype=np.int64)
    free = (np.concatenate((edges[:1], stops)), np.concatenate((starts, edges[1:])))
    pieces = cut((np.zeros(len(free[0]), dtype=np.int64), *free), windows)
    kept = pieces.stop_ns > pieces.start_ns
    row = pieces.window[kept] if len(kept) else nothing
    return Pieces(row, row, pieces.start_ns[kept], pieces.stop_ns[kept])


def label(pieces: Pieces, owners: tuple[Ints, Ints, Ints]) -> tuple[Pieces, Ints]:
    """The pieces cut where the owners' disjoint, sorted intervals begin and end, and the owner of each, -1 for none."""
    row, start, stop = owners
    marks = sorted_values(np.concatenate((start, stop)))
    first = np.searchsorted(marks, pieces.start_ns, side="right")
    last = np.searchsorted(marks, pieces.stop_ns, side="left")
    count = last - first + 1
    source = np.repeat(np.arange(len(pieces.row), dtype=np.int64), count)
    nth = np.arange(len(source), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
    padded = np.concatenate((marks, [0]))
    begin = np.where(nth == 0, pieces.start_ns[source], padded[first[source] + nth - 1])
    end = np.where(nth == count[source] - 1, pieces.stop_ns[source], padded[first[source] + nth])
    at = np.searchsorted(start, begin, side="right") - 1
    owned = (at >= 0) & (begin < stop[np.maximum(at, 0)]) if len(start) else np.zeros(len(begin), dtype=np.bool_)
    owner = np.where(owned, row[np.maximum(at, 0)], -1) if len(start) else np.full(len(begin), -1, dtype=np.int64)
    return Pieces(pieces.row[source], pieces.window[source], begin, end), owner
