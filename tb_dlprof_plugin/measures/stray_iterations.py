"""Iterations whose times are unlike those of the others, by statistics that a few of them cannot move."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.storage.model import Bools, Ints

_NORMAL = 1.4826
"""Standard deviations per median absolute deviation of a normal distribution."""


def stray_iterations(duration_ns: Ints, least_share: float, deviations: float) -> Bools:
    """Which iterations differ from the median of all by more than both limits; none of fewer than three.

    Args:
        duration_ns: of each iteration.
        least_share: of the median.
        deviations: robust standard deviations: Hampel (1974), "The influence curve and its role in robust estimation".
    """
    if len(duration_ns) < 3:
        return np.zeros(len(duration_ns), dtype=np.bool_)
    middle = float(np.median(duration_ns))
    distance = np.abs(duration_ns - middle)
    spread = _NORMAL * float(np.median(distance))
    result: Bools = distance > max(least_share * middle, deviations * spread)
    return result


def longest_run(chosen: Bools) -> tuple[int, int]:
    """First and last index, both inclusive, of the longest unbroken run of True; the later of two as long.

    Raises:
        ValueError: nothing is chosen.
    """
    edges = np.flatnonzero(np.diff(chosen.astype(np.int64), prepend=0, append=0))
    starts, stops = edges[::2], edges[1::2]
    if not len(starts):
        raise ValueError("nothing is chosen")
    best = len(starts) - 1 - int(np.argmax((stops - starts)[::-1]))
    return int(starts[best]), int(stops[best]) - 1
