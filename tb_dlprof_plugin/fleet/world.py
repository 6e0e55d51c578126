"""How many ranks a job has, and which of them were not recorded, by numbers that may be anybody's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

MOST_RANKS = 2**18
"""Of a job, more GPUs than the largest known one has. A larger number is a damaged recording's, and as
if not recorded: a list of the missing ranks up to it would not fit into memory."""


def is_world_size(size: int) -> bool:
    """Whether a job can have so many ranks."""
    return 0 < size <= MOST_RANKS


def world_of(stated: Iterable[int | None], ranks: Sequence[int]) -> int:
    """The number of ranks: the largest that a recording states or the number of a rank needs, at least the recorded."""
    sizes = (*stated, *(rank + 1 for rank in ranks))
    return max((size for size in sizes if size is not None and is_world_size(size)), default=0) or len(ranks)


def missing_of(world: int, ranks: Iterable[int]) -> list[int]:
    """The ranks of a job of so many that are not among these, in their order."""
    return np.setdiff1d(np.arange(world), np.array(list(ranks), dtype=np.int64)).tolist()
