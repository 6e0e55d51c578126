"""Hosts of a job whose ranks are late together: what they share is at fault, not one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tb_dlprof_plugin.fleet.job import Delay
from tb_dlprof_plugin.fleet.rank_facts import RankFacts

MOST_OF_IT = 2 / 3
"""Of all that ranks owe, from which the ranks of one host are what the job waits for."""
_WORTH = 0.01
"""Of the step: less is within what step times vary by."""
_WORDS = {
    "slow_gpu": "slow GPUs",
    "slow_host": "a slow host",
    "slow_input": "slow input",
    "uneven_data": "more work",
    "garbage_collection": "garbage collection",
    "expert_load": "experts with more tokens",
}


def host_notes(facts: Sequence[RankFacts], delays: Sequence[Delay], step_ms: float | None) -> list[str]:
    """A sentence about the host whose ranks owe most, where several of them have the same cause.

    The repair of one of them alone wins little, because the others are as late.
    """
    names = {one.rank: one.host for one in facts}
    owed = sum(one.owed_ms for one in delays)
    if len({*names.values()} - {""}) < 2 or step_ms is None or owed < _WORTH * step_ms:
        return []
    by_host: dict[str, list[Delay]] = {}
    for one in delays:
        by_host.setdefault(names.get(one.rank, ""), []).append(one)
    for host, late in by_host.items():
        cause, count = Counter(one.cause for one in late).most_common(1)[0]
        share = sum(one.owed_ms for one in late if one.cause == cause) / owed
        if not host or count < 2 or cause not in _WORDS or share < MOST_OF_IT:
            continue
        ranks = ", ".join(str(rank) for rank in sorted(one.rank for one in late if one.cause == cause))
        said = f"Host {host}: {_WORDS[cause]} on its ranks {ranks}, to which {100 * share:.0f} % of the waiting"
        return [f"{said} for late ranks is due. Repairing one of them alone wins little."]
    return []
