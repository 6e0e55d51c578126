"""The call tree as columns: parents from depths, and values handed down or up along it without a loop over calls.

Calls are sorted by thread and start, a call's children right after it, each with its depth (0 for a thread's
outermost calls). All functions take a few numpy passes however deep the tree is: rows point at rows above them, and
pointers to pointers double their reach with each pass.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints

_T = TypeVar("_T", bound=np.generic)


def parents(depth: Ints) -> Ints:
    """Row of each call's parent, -1 for outermost calls."""
    count = len(depth)
    result = np.full(count, -1, dtype=np.int64)
    # numpy sorts 16 bits by counting.
    order = np.argsort(depth.astype(np.uint16) if depth.max(initial=0) < 1 << 16 else depth, kind="stable")
    # A parent is the last row before with a depth one less: one sorted key finds it.
    keys = depth[order] * count + order
    nested = order[np.searchsorted(keys, count) :]
    above = np.searchsorted(keys, (depth[nested] - 1) * count + nested) - 1
    result[nested] = order[above]
    return result


def inherit(values: npt.NDArray[_T], is_set: Bools, parent: Ints) -> npt.NDArray[_T]:
    """Each call's own value where ``is_set``, else that of its nearest ancestor which has one, else its own."""
    source = nearest(is_set, parent)
    return take_or(values, source, values)


def nearest(is_set: Bools, parent: Ints) -> Ints:
    """Row of the nearest call, itself or above, that ``is_set``; -1 for none."""
    if not is_set.any():
        return np.full(len(parent), -1, dtype=np.int64)
    top = _follow(np.where(is_set | (parent < 0), np.arange(len(parent), dtype=np.int64), parent))
    return np.where(is_set[top], top, -1)


def outermost(is_set: Bools, parent: Ints) -> Ints:
    """Row of the outermost call, itself or above, that ``is_set``; -1 for none."""
    inner = nearest(is_set, parent)
    rows = np.arange(len(parent), dtype=np.int64)
    around = take_or(inner, parent, -1)
    top = _follow(np.where(is_set & (around >= 0), around, rows))
    return take_or(top, inner, -1)


def climb(rows: Ints, passing: Bools, parent: Ints) -> Ints:
    """Per row the nearest call, itself or above, that is not ``passing``; the outermost where all are; -1 stays."""
    if not len(parent):
        return rows.copy()
    target = _follow(np.where(passing & (parent >= 0), parent, np.arange(len(parent), dtype=np.int64)))
    return take_or(target, rows, rows)


def subtree_ends(parent: Ints) -> Ints:
    """For each call the row after the last of the calls inside it; calls stand parents first."""
    count = len(parent)
    order = np.argsort(parent, kind="stable")
    follows = parent[order[1:]] == parent[order[:-1]]
    sibling = np.full(count, count, dtype=np.int64)
    sibling[order[:-1][follows]] = order[1:][follows]
    # The last of its siblings ends where its parent does.
    return inherit(sibling, sibling < count, parent)


def any_in_subtree(flags: Bools, end: Ints) -> Bools:
    """Whether the call or any call below it is flagged; ``end`` is that of `subtree_ends`."""
    before = np.concatenate(([0], np.cumsum(flags)))
    return before[end] > before[:-1]


def sum_in_subtree(values: Ints, end: Ints) -> Ints:
    """The call's value and those of all calls below it; ``end`` is that of `subtree_ends`."""
    before = np.concatenate(([0], np.cumsum(values)))
    result: Ints = before[end] - before[:-1]
    return result


def self_time(duration_ns: Ints, parent: Ints) -> Ints:
    """Duration less that of the direct children (ns), at least 0: those of the profiler's own work may overlap."""
    inner = np.zeros(len(duration_ns), dtype=np.int64)
    nested = parent >= 0
    np.add.at(inner, parent[nested], duration_ns[nested])
    result: Ints = np.maximum(duration_ns - inner, 0)
    return result


def _follow(pointer: Ints) -> Ints:
    """Where each row's pointers lead in the end; a row that points at itself is an end. Overwrites them."""
    rows, nearer = np.arange(len(pointer), dtype=np.int64), pointer
    while len(rows):
        further = pointer[nearer]
        moved = further != nearer
        # A row that has come to an end stays there.
        rows, nearer = rows[moved], further[moved]
        pointer[rows] = nearer
    return pointer
