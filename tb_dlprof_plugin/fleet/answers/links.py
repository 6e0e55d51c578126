"""Links that are slower than others of the job: equal transfers that take longer between some ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.bandwidth import bus_gb_s, link_gb_s
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
LARGE_BYTES = 8_000_000
USED = 0.15
"""Share of the link's rate below which large transfers do not use it: without peer access two H200s reach less than a
tenth, with it a half at 30 MB."""
USUAL = 0.5


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
        return _below_link(facts, calls, rows, size[rows], members)
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


def _below_link(facts: Sequence[RankFacts], calls: Calls, rows: Ints, size: Ints, members: Ints) -> list[SlowLink]:
    """All ranks of one host whose largest transfers use a small part of what its GPUs' link carries."""
    link = {link_gb_s(one.gpu) for one in facts}
    large = size >= LARGE_BYTES
    attainable = link.pop()
    if link or attainable is None or len({one.host for one in facts}) > 1 or not large.any():
        return []
    number, example = numbered(calls.operation[rows], members)
    units = [bus_gb_s(int(calls.operation[rows[at]]), 1, int(members[at]), 1.0) or 0.0 for at in example.tolist()]
    best = float((size * np.array(units)[number] / np.maximum(calls.transfer[rows], 1))[large].max())
    if not best or best >= USED * attainable:
        return []
    why = f"Large transfers reach {best:,.0f} GB/s on links that carry {attainable:,.0f}: they may not use NVLink."
    slowdown = USUAL * attainable / best
    return [SlowLink(index, rows[calls.rank[rows] == index], slowdown, why) for index in range(len(facts))]
