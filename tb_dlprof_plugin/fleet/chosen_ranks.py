"""Ranks whose calls are compared: all, or of a job with too many calls in one step those that can matter, and others.

A rank that delays its group has the least exposed communication in it, and members of a slow link have the most, which
the account of each rank's own steps shows without looking at calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

MOST_CALLS = 2_000_000
"""Calls of all compared ranks where not all are. A replay of so many takes a quarter of a second."""
_TOGETHER = (64, 32, 16, 8, 1)
"""Groups of up to so many members are compared whole or not at all: what delays a rank is in them. The first of these
that leaves small enough parts of the job is taken."""
_PARTS = 16
"""Parts of the room for calls that the ranks which belong together may take."""


def ranks_with_room(facts: Sequence[RankFacts], most: int = MOST_CALLS, limit: int = 0) -> Ints | None:
    """Indices of the ranks whose calls are compared, rising; None: of all.

    Half of them communicate least, compared with ranks that make as many calls, a quarter most, and the rest is drawn,
    always the same ones.

    Args:
        facts: of all ranks, with the calls of the steps that are compared.
        most: calls of the chosen ranks together.
        limit: with up to so many calls all ranks are compared; by default ``most``.
    """
    calls = np.array([len(rank.collectives) for rank in facts], dtype=np.int64)
    if int(calls.sum()) <= max(most, limit):
        return None
    part = _parts(facts, calls, most // _PARTS)
    size = np.bincount(part, weights=calls)
    more = _more_than_others(facts, calls)
    least, largest = np.full(len(size), np.inf), np.full(len(size), -np.inf)
    np.minimum.at(least, part, more)
    np.maximum.at(largest, part, more)
    drawn = np.random.default_rng(0).permutation(len(size))
    chosen = np.zeros(len(size), dtype=np.bool_)
    left = float(most)
    for order, until in ((np.argsort(least), most / 2), (np.argsort(-largest), most / 4), (drawn, 0.0)):
        rest = order[~chosen[order]]
        taken = rest[np.cumsum(size[rest]) <= left - until]
        chosen[taken] = True
        left -= float(size[taken].sum())
    result: Ints = np.flatnonzero(chosen[part])
    return result if len(result) > 1 else None


def _more_than_others(facts: Sequence[RankFacts], calls: Ints) -> Floats:
    """By how much more of its steps a rank communicates exposed than the median of ranks with as many calls."""
    share = np.zeros(len(facts))
    for index, rank in enumerate(facts):
        whole = int((rank.steps.end_ns - rank.steps.start_ns).sum())
        share[index] = np.maximum(rank.steps.communication_ns, 0).sum() / max(whole, 1)
    for count in np.unique(calls):
        same = calls == count
        share[same] -= np.median(share[same])
    return share


def _parts(facts: Sequence[RankFacts], calls: Ints, room: int) -> Ints:
    """Per rank a number for those that are chosen together."""
    index_of = {one.rank: index for index, one in enumerate(facts)}
    groups = {group.members for one in facts for group in one.groups if len(group.members) > 1}
    small = [[index_of[rank] for rank in own if rank in index_of] for own in groups if len(own) <= _TOGETHER[0]]
    parts: Ints = np.arange(len(facts))
    for most in _TOGETHER:
        parts = _joined(len(facts), [own for own in small if len(own) <= most])
        if np.bincount(parts, weights=calls).max() <= room:
            break
    return parts


def _joined(count: int, groups: Sequence[Sequence[int]]) -> Ints:
    """Numbers from 0: ranks that a chain of groups connects have the same."""
    part = list(range(count))

    def root(one: int) -> int:
        while part[one] != one:
            part[one] = part[part[one]]
            one = part[one]
        return one

    for own in groups:
        for other in own[1:]:
            part[root(other)] = root(own[0])
    roots = np.array([root(one) for one in range(count)], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].reshape(-1).astype(np.int64)
