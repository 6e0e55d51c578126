"""Matches collectives where all members of each group recorded the same numbered calls: no search, no sorting of calls.

That is so for most jobs of one program on all ranks, and takes a twentieth of the time of `matching.match`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.job import MatchedShare
from tb_dlprof_plugin.fleet.matching import Matched
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Ints

_COLUMNS = ("operation", "bytes", "sequence", "iteration")


def match_alike(facts: Sequence[RankFacts]) -> Matched | None:
    """None where a call has no group or number, is a send or receive, or members differ: then `match` has to look."""
    groups: dict[tuple[int, ...], list[tuple[int, Ints]]] = {}
    for index, one in enumerate(facts):
        calls = one.collectives
        odd = (calls.group == UNKNOWN) | (calls.sequence == UNKNOWN)
        if (odd | (calls.operation == Operation.SEND) | (calls.operation == Operation.RECEIVE)).any():
            return None
        for place, group in enumerate(one.groups):
            rows = np.flatnonzero(calls.group == place)
            if not len(rows) or len(group.members) == 1:
                continue
            same = groups.setdefault(group.members, [])
            # Two groups of one rank with the same members: numbers of calls do not tell them apart.
            if not group.members or (same and same[-1][0] == index):
                return None
            same.append((index, rows))
    parts = []
    for members in groups.values():
        if len(members) < 2:
            continue
        index, rows = members[0]
        number = facts[index].steps.number[facts[index].collectives.iteration[rows]]
        for other, theirs in members[1:]:
            if len(theirs) != len(rows) or not _same(facts[index], rows, facts[other], theirs):
                return None
        ranks = np.array([one for one, _ in members])
        parts.append(
            (number, facts[index].collectives.operation[rows], ranks, np.stack([own for _, own in members], 1))
        )
    if not parts:
        return None
    size = np.concatenate([np.full(len(rows), len(ranks)) for _, _, ranks, rows in parts])
    return Matched(
        first=np.concatenate(([0], np.cumsum(size))),
        rank_index=np.concatenate([np.tile(ranks, len(rows)) for _, _, ranks, rows in parts]),
        row=np.concatenate([rows.reshape(-1) for _, _, _, rows in parts]),
        iteration=np.concatenate([number for number, _, _, _ in parts]),
        operation=np.concatenate([operation for _, operation, _, _ in parts]),
        matching=MatchedShare(len(size), len(size), 100.0, 0, "sequence"),
    )


def _same(first: RankFacts, rows: Ints, other: RankFacts, theirs: Ints) -> bool:
    one, two = first.collectives, other.collectives
    if one is two and np.array_equal(rows, theirs):
        return np.array_equal(first.steps.number, other.steps.number)
    same = all(np.array_equal(getattr(one, name)[rows], getattr(two, name)[theirs]) for name in _COLUMNS)
    return same and np.array_equal(first.steps.number, other.steps.number)
