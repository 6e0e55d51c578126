"""Unique rows of several integer columns, in one pass over the rows."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints

_ROOM = 2**62


def group_rows(*columns: Ints) -> tuple[list[Ints], Ints]:
    """The unique rows in lexicographic order, as columns, and for each row its index among them.

    The same as ``numpy.unique(axis=1, return_inverse=True)`` of the stacked columns, which sorts whole rows and takes
    ten times as long.

    Args:
        columns: of one length, with values from -1 up.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    size = 1
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        if size >= _ROOM // width:
            values, code = _number(code)
            size = len(values)
        code = code * width + (column + 1)
        size *= width
    _, inverse = _number(code)
    first = first_rows(inverse)
    return [column[first] for column in columns], inverse


def distinct(column: Ints) -> Ints:
    """The sorted distinct values of a column of indices (0 and up). ``numpy.unique`` sorts all rows, and its first call
    imports numpy.ma, which takes longer than a small trace."""
    seen = np.zeros(int(column.max(initial=-1)) + 1, dtype=np.bool_)
    seen[column] = True
    return np.flatnonzero(seen)


def first_rows(column: Ints) -> Ints:
    """For a column of indices the first row of each distinct value, in order of the values."""
    first = np.full(int(column.max(initial=-1)) + 1, -1, dtype=np.int64)
    # The last write stays: backwards, that of the first row.
    first[column[::-1]] = np.arange(len(column) - 1, -1, -1, dtype=np.int64)
    return first[first >= 0]


def _number(code: Ints) -> tuple[Ints, Ints]:
    """The sorted unique values and each row's index among them; only the values are sorted, not the rows."""
    seen = {value: number for number, value in enumerate(dict.fromkeys(code.tolist()))}
    values = np.fromiter(seen, np.int64, len(seen))
    order = np.argsort(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values), dtype=np.int64)
    found = np.fromiter(map(seen.__getitem__, code.tolist()), np.int64, len(code))
    return values[order], rank[found] if len(code) else found
