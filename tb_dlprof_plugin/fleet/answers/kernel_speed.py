"""How fast a rank's kernels are next to the same ones of other ranks, and how many of them it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints

SLOWER = 1.02
"""Kernels at equal shapes, from which a GPU is slower than the others: GPUs of one kind differ by about 1 %."""
_ALL = 0.98
"""Share of the launches from which ranks run the same kernels: only the longest ones are kept."""


@dataclass(frozen=True, slots=True)
class KernelSpeed:
    """A rank's kernels compared with the median of the other ranks.

    Attributes:
        slowdown: time of the kernels in common over what they would take at the others' speed; 1 is as fast. None where
            none of them ran outside of collectives.
        shared: share of the others' launches that this rank makes too, at the same shapes.
        added: time of its launches that the others do not make over the time of the kernels in common, by the longest
            ones.
    """

    slowdown: float | None
    shared: float
    added: float

    @property
    def same_kernels(self) -> bool:
        """Whether it runs what the others run, and nothing more."""
        return self.shared >= _ALL and self.added < SLOWER - 1

    @property
    def same_work(self) -> bool:
        """Whether it runs the same kernels for as long: its GPU is not at fault."""
        return self.same_kernels and self.slowdown is not None and self.slowdown < SLOWER


def kernel_speed(facts: Sequence[RankFacts], index: int, others: Ints) -> KernelSpeed | None:
    """None where no kernel is known, of the rank or of the others."""
    counts: dict[int, list[int]] = {}
    times: dict[int, list[int]] = {}
    for other in others.tolist():
        table = facts[other].kernels
        for key, count, mean in zip(table.key.tolist(), table.count.tolist(), table.mean_ns.tolist(), strict=True):
            counts.setdefault(key, []).append(count)
            if mean > 0:
                times.setdefault(key, []).append(mean)
    table = facts[index].kernels
    own = {
        key: (count, mean)
        for key, count, mean in zip(table.key.tolist(), table.count.tolist(), table.mean_ns.tolist(), strict=True)
    }
    if not counts or not own:
        return None
    usual = {key: float(np.median(numbers)) for key, numbers in counts.items()}
    shared = sum(min(own[key][0], count) for key, count in usual.items() if key in own) / sum(usual.values())
    # A kernel that never ran without a collective, here or there, cannot be compared.
    common = [key for key, (_, mean) in own.items() if mean > 0 and key in times]
    here = sum(own[key][0] * own[key][1] for key in common)
    there = sum(own[key][0] * float(np.median(times[key])) for key in common)
    added = sum(max(count - usual.get(key, 0.0), 0.0) * mean for key, (count, mean) in own.items() if mean > 0)
    return KernelSpeed(here / there if there else None, shared, added / there if there else np.inf)
