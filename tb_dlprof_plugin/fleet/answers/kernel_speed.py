"""Whether a rank's kernels are slower than the same kernels on other ranks, and how much of its work they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints


@dataclass(frozen=True, slots=True)
class KernelSpeed:
    """A rank's kernels compared with the median of the other ranks.

    Attributes:
        slowdown: time of the kernels in common over what they would take at the others' speed; 1 is as fast.
        common: share of the rank's kernel time in kernels that other ranks run at the same shapes, as often.
    """

    slowdown: float
    common: float


def kernel_speed(facts: Sequence[RankFacts], index: int, others: Ints) -> KernelSpeed | None:
    """None where no kernel is known, or none is common."""
    own = facts[index].kernels
    if not len(own.key) or not len(others):
        return None
    times: dict[int, list[tuple[int, int]]] = {}
    for other in others.tolist():
        table = facts[other].kernels
        for key, count, mean in zip(table.key.tolist(), table.count.tolist(), table.mean_ns.tolist(), strict=True):
            times.setdefault(key, []).append((count, mean))
    mine = expected = total = common = 0.0
    for key, count, mean in zip(own.key.tolist(), own.count.tolist(), own.mean_ns.tolist(), strict=True):
        total += count * mean
        if found := times.get(key):
            usual = float(np.median([each[0] for each in found]))
            mine += count * mean
            expected += count * float(np.median([each[1] for each in found]))
            common += min(count, usual) * mean
    if not expected or not total:
        return None
    return KernelSpeed(mine / expected, common / total)
