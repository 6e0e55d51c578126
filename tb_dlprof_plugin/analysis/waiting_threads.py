"""Launches of a thread without ranges, while another thread of the process waits in one.

A training step's backward pass is pushed as a range on the main thread and launched by autograd's; TensorFlow's
executor launches from threads of its own. A launch on a thread that has no range at all
belongs to the innermost range around that moment, if one thread alone has any there, and that thread launches nothing
between the other's launches in it.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.timeline import Timeline


def lending_ranges(timeline: Timeline, kind: Ints, call: Ints) -> Ints:
    """Per host event the row of the range that lends its op to it, -1 for none.

    Args:
        timeline: with ``by_time``; of any other, no range lends anything.
        kind: `CallKind` of each host event.
        call: per device event the row of its launching host event, -1 for none.
    """
    host = timeline.host
    result = np.full(len(host), -1, dtype=np.int64)
    launches = distinct(call[call >= 0]) if timeline.by_time else call[:0]
    is_range = (kind == CallKind.OP) | (kind == CallKind.ANNOTATION) | (kind == CallKind.MODULE)
    if not len(launches) or not is_range.any():
        return result
    with_ranges = np.zeros(int(host.thread.max()) + 1, dtype=np.bool_)
    with_ranges[host.thread[is_range]] = True
    without = launches[~with_ranges[host.thread[launches]]]
    if not len(without):
        return result
    time = host.start_ns[without]
    around = np.full(len(without), -1, dtype=np.int64)
    several = np.zeros(len(without), dtype=np.bool_)
    for thread in np.flatnonzero(with_ranges).tolist():
        rows = np.flatnonzero((host.thread == thread) & is_range)
        found = _innermost(host.start_ns[rows], (host.start_ns + host.duration_ns)[rows], time)
        inside = found >= 0
        several |= inside & (around >= 0)
        around[inside] = rows[found[inside]]
    lent = (around >= 0) & ~several
    lent[lent] = _waits(timeline, launches, without[lent], around[lent])
    result[without[lent]] = around[lent]
    return result


def _innermost(start_ns: Ints, stop_ns: Ints, time_ns: Ints) -> Ints:
    """The last of the ranges to start that is around each time, -1 for none. Ranges are in order of start."""
    position = np.searchsorted(start_ns, time_ns, side="right") - 1
    # The range before which is around the whole of each: a chain from the last that began.
    outer = np.full(len(start_ns), -1, dtype=np.int64)
    stack: list[int] = []
    for row, (start, stop) in enumerate(zip(start_ns.tolist(), stop_ns.tolist(), strict=True)):
        while stack and stop_ns[stack[-1]] <= start:
            stack.pop()
        outer[row] = stack[-1] if stack else -1
        stack.append(row)
        del stop
    while True:
        past = (position >= 0) & (stop_ns[np.maximum(position, 0)] <= time_ns)
        if not past.any():
            return position
        position = np.where(past, outer[np.maximum(position, 0)], position)


def _waits(timeline: Timeline, launches: Ints, borrowing: Ints, lending: Ints) -> Bools:
    """Whether the range's own thread launches nothing between the first and the last launch that it would lend to."""
    host = timeline.host
    first, last = (np.full(len(host), value, dtype=np.int64) for value in (2**62, -(2**62)))
    np.minimum.at(first, lending, host.start_ns[borrowing])
    np.maximum.at(last, lending, host.start_ns[borrowing])
    waits = np.zeros(len(host), dtype=np.bool_)
    for thread in distinct(host.thread[lending]).tolist():
        own = np.sort(host.start_ns[launches[host.thread[launches] == thread]])
        rows = distinct(lending[host.thread[lending] == thread])
        between = np.searchsorted(own, last[rows], side="right") - np.searchsorted(own, first[rows], side="left")
        waits[rows] = between == 0
    return waits[lending]
