"""Which ranks do the same work in the same order, which meet in a collective, and which rows of columns are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import JobCalls, stage_of, stages_exchange
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
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


_DENSE = 1 << 16


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
