"""Small numbers for rows of several columns, without sorting where the values are small."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints

_DENSE = 1 << 16


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """The number of each row, rows with equal columns having the same, and one row of each number."""
    result = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own, count = _small(column)
        result, _ = _small(result * count + own)
    _, count = result, int(result.max(initial=-1)) + 1
    example = np.zeros(count, dtype=np.int64)
    example[result] = np.arange(len(result))
    return result, example


def _small(column: Ints) -> tuple[Ints, int]:
    """Numbers from 0 without gaps, in order of the values, and how many there are."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if high - low < _DENSE:
        there = np.zeros(high - low + 1, dtype=np.int64)
        there[column - low] = 1
        place = np.cumsum(there) - 1
        return place[column - low], int(place[-1]) + 1
    values, inverse = np.unique(column, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), len(values)
