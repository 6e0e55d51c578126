"""Scales recorded times of a step's parts so that they sum to the step without the recorder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tb_dlprof_plugin.model.profile import Floats, Ints

_Times = TypeVar("_Times", Ints, Floats)


def shortened(times_ns: _Times, groups: Sequence[Sequence[int]], by_ns: float | _Times) -> _Times:
    """The times with ``by_ns`` taken out: of the first group as much as it has, what is left of the next.

    Args:
        times_ns: one per part, or rows of them; whole numbers stay whole.
        groups: indices of the parts; within a group each part gives the same share of its time.
        by_ns: how much shorter all parts together become, of each row. What the groups do not have is not taken out.
    """
    result = np.atleast_2d(times_ns).copy()
    left = np.broadcast_to(np.asarray(by_ns, dtype=result.dtype), result.shape[:1]).copy()
    for group in groups:
        parts = list(group)
        have = result[:, parts].sum(axis=1)
        cut = np.minimum(left, have)
        if result.dtype.kind == "f":
            result[:, parts] *= (1 - cut / np.where(have > 0, have, 1))[:, None]
        else:
            result[:, parts] = scaled(result[:, parts], have - cut)  # type: ignore[arg-type]
        left -= cut
    return result.reshape(times_ns.shape)


def scaled(times_ns: Ints, total_ns: int | Ints) -> Ints:
    """The times (one per part, or rows of them) in the same proportions, with the sum ``total_ns``; all 0 where they
    are."""
    edges = np.cumsum(times_ns, axis=-1)
    whole = edges[..., -1:]
    total = np.asarray(total_ns, dtype=np.int64)[..., None]
    fitted = np.rint(edges * (total / np.maximum(whole, 1))).astype(np.int64)
    return np.diff(np.where(edges == whole, np.where(whole > 0, total, 0), fitted), prepend=0, axis=-1)
