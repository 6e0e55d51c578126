"""Medians of many groups at once."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Floats, Ints


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
