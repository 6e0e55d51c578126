"""Which ranks do the same work in the same order, so that their times can be compared call by call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls, stage_of, stages_exchange
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints


def peers(facts: Sequence[RankFacts], calls: Calls) -> Ints:
    """Per rank the number of its class: ranks of one pipeline stage that made the same calls in the same order."""
    staged = stages_exchange(calls.operation)
    signatures = [
        (
            staged and stage_of(one),
            calls.operation[calls.of_rank(index)].tobytes(),
            calls.step[calls.of_rank(index)].tobytes(),
        )
        for index, one in enumerate(facts)
    ]
    numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
    return np.array([numbers[signature] for signature in signatures], dtype=np.int64)


def of_others(calls: Calls, classes: Ints, rank: int, column: Floats, per_rank: Floats) -> tuple[Floats, float] | None:
    """Median over `others_of` a rank, call by call, of a column and of a figure per rank; None without others."""
    others = others_of(classes, rank)
    if not len(others):
        return None
    table = np.stack([column[calls.of_rank(int(other))] for other in others])
    return np.median(table, axis=0), float(np.median(per_rank[others]))


def others_of(classes: Ints, rank: int) -> Ints:
    """The other ranks of a class; of more than `ENOUGH` as many that are drawn, always the same ones.

    They are not evenly spread: those would have the same place in other dimensions of the mesh.
    """
    same = np.flatnonzero(classes == classes[rank])
    others: Ints = same[same != rank]
    if len(others) <= ENOUGH:
        return others
    result: Ints = np.sort(np.random.default_rng(0).choice(others, ENOUGH, replace=False))
    return result


ENOUGH = 64
"""Ranks to compare one with: the standard error of a median is then a sixth of the spread of single ones."""


def steps_alike(calls: Calls, rank: int) -> int:
    """The number of steps, if a rank made the same calls in each; 0 where it did not."""
    rows = calls.of_rank(rank)
    count = np.bincount(calls.step[rows], minlength=calls.steps)
    if not len(count) or count.min() != count.max() or not count[0]:
        return 0
    kinds = calls.operation[rows].reshape(calls.steps, -1)
    return calls.steps if bool((kinds == kinds[0]).all()) else 0
