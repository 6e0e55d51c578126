"""The call tree as columns: parents from depths, and values handed down or up along it without a loop over calls.

Calls stand in order of thread and start, a call's children right behind it, each with its depth (0 for a thread's
outermost calls). All functions work level by level, so their cost is (depth) numpy passes.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.storage.model import Bools, Ints

_T = TypeVar("_T", bound=np.generic)


def parents(depth: Ints) -> Ints:
    """Row of each call's parent, -1 for outermost calls."""
    result = np.full(len(depth), -1, dtype=np.int64)
    rows = np.arange(len(depth), dtype=np.int64)
    for level in range(1, int(depth.max(initial=0)) + 1):
        above = np.maximum.accumulate(np.where(depth == level - 1, rows, -1))
        here = depth == level
        result[here] = above[here]
    return result


def inherit(values: npt.NDArray[_T], is_set: Bools, parent: Ints, depth: Ints) -> npt.NDArray[_T]:
    """Each call's own value where ``is_set``, else that of its nearest ancestor which has one, else its own."""
    result = values.copy()
    known = is_set.copy()
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero((depth == level) & ~known)
        rows = rows[known[parent[rows]]]
        result[rows] = result[parent[rows]]
        known[rows] = True
    return result


def climb(rows: Ints, passing: Bools, parent: Ints) -> Ints:
    """Per row the nearest call, itself or above, that is not ``passing``; the outermost where all are; -1 stays."""
    result = rows.copy()
    while True:
        known = np.maximum(result, 0)
        climbing = (result >= 0) & passing[known] & (parent[known] >= 0)
        if not climbing.any():
            return result
        result[climbing] = parent[result[climbing]]


def any_in_subtree(flags: Bools, parent: Ints, depth: Ints) -> Bools:
    """Whether the call or any call below it is flagged."""
    result = flags.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero((depth == level) & result)
        result[parent[rows]] = True
    return result


def self_time(duration_ns: Ints, parent: Ints) -> Ints:
    """Duration less that of the direct children (ns)."""
    inner = np.zeros(len(duration_ns), dtype=np.int64)
    nested = parent >= 0
    np.add.at(inner, parent[nested], duration_ns[nested])
    return duration_ns - inner
