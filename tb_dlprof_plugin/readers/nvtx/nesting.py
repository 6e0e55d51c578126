"""How ranges lie in each other on their threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.model.tree import parents


@dataclass(frozen=True, slots=True)
class NestedSpans:
    """Ranges in the order of `depths`: by thread, start and falling duration (ns)."""

    thread: Ints
    start_ns: Ints
    duration_ns: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


def parent_rows(thread: Ints, start_ns: Ints, stop_ns: Ints) -> Ints:
    """Per range the row of the innermost one around it, -1 for none. Threads are small numbers."""
    order = np.lexsort((start_ns - stop_ns, start_ns, thread))
    sorted_parent = parents(depths(NestedSpans(thread[order], start_ns[order], (stop_ns - start_ns)[order])))
    parent = np.full(len(order), -1, dtype=np.int64)
    parent[order] = take_or(order, sorted_parent, -1)
    return parent


def with_children(parent: Ints, rows: Bools) -> Bools:
    """Which ranges have one of ``rows`` right inside."""
    result = np.zeros(len(parent), dtype=np.bool_)
    inside = parent[rows]
    result[inside[inside >= 0]] = True
    return result


def anything_around(marked: Bools, parent: Ints) -> Bools:
    """Which ranges lie in a marked one, at whatever depth."""
    result = np.zeros(len(parent), dtype=np.bool_)
    while True:
        around = take_or(marked | result, parent, False)
        if len(parent) == 0 or np.array_equal(around, result):
            return result
        result = around


def inside_any(thread: Ints, start_ns: Ints, stop_ns: Ints, rows: Ints, around: Ints) -> Bools:
    """Which of ``rows`` lie in one of the ranges ``around`` on their thread."""
    result = np.zeros(len(rows), dtype=np.bool_)
    outer_of = dict(rows_of_each(thread[around]))
    for one, mine in rows_of_each(thread[rows]):
        if one not in outer_of:
            continue
        outer = around[outer_of[one]]
        outer = outer[np.argsort(start_ns[outer], kind="stable")]
        reach = np.maximum.accumulate(stop_ns[outer])
        last = np.searchsorted(start_ns[outer], start_ns[rows[mine]], side="right") - 1
        result[mine] = (last >= 0) & (stop_ns[rows[mine]] <= reach[np.maximum(last, 0)])
    return result
