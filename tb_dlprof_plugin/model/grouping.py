"""Unique rows of several integer columns, in one pass over the rows; numbers for equal rows; medians of groups."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.profile import Floats, Ints

_T = TypeVar("_T", bound=np.generic)
_ROOM = 2**62
_PART = 2**16


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


def sorted_values(values: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """The sorted distinct values of times or keys. ``numpy.unique`` puts them into a table of hashes first, which takes
    ten times as long where most differ."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def first_rows(column: Ints) -> Ints:
    """For a column of indices the first row of each distinct value, in order of the values."""
    first = np.full(int(column.max(initial=-1)) + 1, -1, dtype=np.int64)
    # The last write stays: backwards, that of the first row.
    first[column[::-1]] = np.arange(len(column) - 1, -1, -1, dtype=np.int64)
    return first[first >= 0]


def numbered(*columns: Ints) -> Ints:
    """Small numbers for the different rows of several columns, in their order."""
    result, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        width = int(column.max(initial=0)) - low + 1
        if width > _ROOM or size * width > _ROOM:
            result, size = dense(result)
            column, width = dense(column)
            low = 0
        result = result * width + (column - low)
        size *= width
    return dense(result)[0]


def dense(values: Ints) -> tuple[Ints, int]:
    """The place of each value among the sorted different ones, and how many there are."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low <= 4 * len(values) + 1024:
        # Few values a row: counted, not sorted.
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        seen[values - low] = True
        place = np.cumsum(seen) - 1
        return place[values - low], int(place[-1]) + 1
    different, inverse = np.unique(values, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), len(different)


def grouped_median(group: Ints, values: Floats | Ints, groups: int) -> Floats:
    """The lower median of the values of each group; 0 for one without values.

    Args:
        group: of each value, 0 to ``groups - 1``.
        values: the values.
        groups: how many groups there are.
    """
    order = np.lexsort((values, group))
    number = np.bincount(group, minlength=groups)
    first = np.cumsum(number) - number
    result = np.zeros(groups)
    some = number > 0
    result[some] = values[order[first[some] + (number[some] - 1) // 2]]
    return result


def _number(code: Ints) -> tuple[Ints, Ints]:
    """The sorted unique values and each row's index among them; only the values are sorted, not the rows."""
    # In parts: the rows as Python's numbers take several times the memory of the column.
    parts = [code[at : at + _PART] for at in range(0, len(code), _PART)]
    different: dict[int, None] = {}
    for part in parts:
        different.update(dict.fromkeys(part.tolist()))
    seen = {value: number for number, value in enumerate(different)}
    values = np.fromiter(seen, np.int64, len(seen))
    order = np.argsort(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values), dtype=np.int64)
    found = np.empty(len(code), dtype=np.int64)
    for at, part in zip(range(0, len(code), _PART), parts, strict=True):
        found[at : at + _PART] = rank[np.fromiter(map(seen.__getitem__, part.tolist()), np.int64, len(part))]
    return values[order], found
