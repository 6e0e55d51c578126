"""Recorded times of a step's parts, made shorter or longer until they sum to the step without the recorder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.storage.model import Ints


def shortened(times_ns: Ints, groups: Sequence[Sequence[int]], by_ns: int) -> Ints:
    """The times with ``by_ns`` taken out: of the first group as much as it has, what is left of the next.

    Args:
        times_ns: one per part.
        groups: indices of the parts; within a group each part gives the same share of its time.
        by_ns: how much shorter all of them together become; at most what the groups have.
    """
    result = times_ns.copy()
    for group in groups:
        rows = list(group)
        have = int(result[rows].sum())
        cut = min(by_ns, have)
        if cut > 0:
            result[rows] = scaled(result[rows], have - cut)
            by_ns -= cut
    return result


def scaled(times_ns: Ints, total_ns: int) -> Ints:
    """The times in the same proportions, with the sum ``total_ns``; all 0 where they are."""
    whole = int(times_ns.sum())
    if not whole:
        return times_ns.copy()
    edges = np.rint(np.cumsum(times_ns) * (total_ns / whole)).astype(np.int64)
    edges[np.cumsum(times_ns) == whole] = total_ns
    return np.diff(edges, prepend=0)
