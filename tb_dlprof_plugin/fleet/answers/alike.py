"""Which ranks do the same work in the same order, which meet in a collective, and which rows of columns are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import JobCalls, stage_of, stages_exchange
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.profile import Ints


def peers(facts: Sequence[RankFacts], calls: JobCalls) -> Ints:
    """Per rank the number of its class: ranks of one pipeline stage that made the same calls in the same order."""
    staged = stages_exchange(calls.operation)
    signatures = [
        (
            staged and stage_of(rank),
            calls.operation[calls.of_rank(index)].tobytes(),
            calls.step[calls.of_rank(index)].tobytes(),
        )
        for index, rank in enumerate(facts)
    ]
    numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
    return np.array([numbers[signature] for signature in signatures], dtype=np.int64)


def others_of(classes: Ints, rank: int) -> Ints:
    """The other ranks of a class; of more than `ENOUGH` as many that are drawn, always the same ones.

    They are not evenly spread: those would have the same place in other dimensions of the mesh.
    """
    same = np.flatnonzero(classes == classes[rank])
    others: Ints = same[same != rank]
    if len(others) <= ENOUGH:
        return others
    return np.sort(np.random.default_rng(0).choice(others, ENOUGH, replace=False))


def compared_with(classes: Ints, rank: int) -> Ints:
    """`others_of`; of a rank alone in its class, as a stage of a pipeline is, all the other ranks."""
    others = others_of(classes, rank)
    return others if len(others) else np.delete(np.arange(len(classes)), rank)


ENOUGH = 64
"""Ranks to compare one with: the standard error of a median is then a sixth of the spread of single ones."""


def steps_alike(calls: JobCalls, rank: int) -> int:
    """The number of steps, if a rank made the same calls in each; 0 where it did not."""
    rows = calls.of_rank(rank)
    count = np.bincount(calls.step[rows], minlength=calls.steps)
    if not len(count) or count.min() != count.max() or not count[0]:
        return 0
    kinds = calls.operation[rows].reshape(calls.steps, -1)
    return calls.steps if bool((kinds == kinds[0]).all()) else 0


def rank_sets(calls: JobCalls) -> Ints:
    """Of each call a number for the set of ranks that share its collective: the sum of their random numbers."""
    marks = np.random.default_rng(0).integers(1, 2**40, calls.ranks)
    return np.bincount(calls.collective, weights=marks[calls.rank]).astype(np.int64)[calls.collective]


def members_of(facts: Sequence[RankFacts], calls: JobCalls) -> Ints:
    """Of each call how many ranks take part: of the recorded ones, or of its group where that has more."""
    joined: Ints = np.bincount(calls.collective)[calls.collective]
    for index, rank in enumerate(facts):
        at = calls.of_rank(index)
        counts = np.array([len(group.members) for group in rank.groups] + [0])
        joined[at] = np.maximum(joined[at], counts[rank.collectives.group[calls.row[at]]])
    return joined


def kinds_of(*columns: Ints) -> tuple[Ints, Ints]:
    """The number of each row, rows with equal columns having the same, and one row of each number."""
    number = numbered(*columns)
    example = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    example[number] = np.arange(len(number))
    return number, example
