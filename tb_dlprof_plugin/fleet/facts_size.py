"""How much memory the facts of a rank take: parts that several ranks share count once."""

from __future__ import annotations

from tb_dlprof_plugin.fleet.facts_check import columns_of
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.process_groups import MEMBER_BYTES
from tb_dlprof_plugin.store.allowance import ENTRY_BYTES

_RANK_BYTES = 10_000
"""Of the facts without what is in their tables and lists."""


def sizes_of_parts(facts: RankFacts) -> dict[int, int]:
    """The bytes of each column, of the members of each group and of the rest, by `id` of the object."""
    texts = (*facts.strings, *facts.notes, facts.host, facts.gpu)
    entries = len(texts) + len(facts.groups) + len(facts.mesh)
    sizes = {id(facts): _RANK_BYTES + ENTRY_BYTES * entries + sum(map(len, texts))}
    for group in facts.groups:
        sizes[id(group.members)] = MEMBER_BYTES * len(group.members)
    for table in (facts.steps, facts.collectives, facts.kernels, facts.gradients):
        for column in columns_of(table).values():
            # One number for all rows takes no room.
            sizes[id(column)] = column.nbytes if any(column.strides) else 0
    return sizes
