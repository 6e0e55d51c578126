"""Links that are slower than others of the job: equal transfers that take longer between some ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.numbering import numbered
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints

SLOWER = 1.5
"""Transfers of a group over the median of groups with equal calls, from which its link is slow. Ours: transfers of
equal groups differ by up to a third where they share switches."""
LEAST_BYTES = 1_000_000
"""A smaller transfer takes its latency, which says little about a link."""
LEAST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A rank on a slow link: index into the facts, the rows of its group's calls, by what factor they are slower."""

    index: int
    rows: Ints
    slowdown: float
    why: str


def slow_links(facts: Sequence[RankFacts], calls: Calls) -> list[SlowLink]:
    """Ranks whose group transfers `SLOWER` times as long as other groups do, at equal operation, size and bytes."""
    if not calls.coupled.any():
        return []
    size = np.concatenate([one.collectives.bytes[calls.row[calls.of_rank(i)]] for i, one in enumerate(facts)])
    rows = np.flatnonzero(calls.coupled & (size >= LEAST_BYTES))
    if not len(rows):
        return []
    members = np.bincount(calls.collective)[calls.collective[rows]]
    # The set of ranks in a collective, as the sum of their random numbers.
    marks = np.random.default_rng(0).integers(1, 2**40, calls.ranks)
    total = np.bincount(calls.collective[rows], weights=marks[calls.rank[rows]]).astype(np.int64)
    group, example = numbered(total[calls.collective[rows]])
    if len(example) < LEAST_GROUPS:
        return []
    like, _ = numbered(calls.operation[rows], size[rows], members)
    found: list[SlowLink] = []
    for kind in np.unique(like).tolist():
        here = np.flatnonzero(like == kind)
        groups = np.unique(group[here])
        if len(groups) < LEAST_GROUPS:
            continue
        median = {one: float(np.median(calls.transfer[rows[here[group[here] == one]]])) for one in groups.tolist()}
        usual = float(np.median(list(median.values())))
        for one, value in median.items():
            if usual and value >= SLOWER * usual:
                at = rows[here[group[here] == one]]
                ranks = np.unique(calls.rank[at])
                names = ", ".join(str(facts[index].rank) for index in ranks[:8].tolist())
                why = (
                    f"Equal transfers between ranks {names} take {value / usual:.1f} times as long as in other groups."
                )
                found += [SlowLink(int(index), at, value / usual, why) for index in ranks.tolist()]
    return found
