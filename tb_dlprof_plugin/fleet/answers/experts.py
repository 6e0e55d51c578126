"""Load of experts: bytes that each rank exchanges in all-to-all calls, the largest over the mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts
from tb_dlprof_plugin.model.profile import Floats


def expert_bytes(facts: Sequence[RankFacts]) -> Floats | None:
    """Bytes of a rank's all-to-all calls per step; None where no rank recorded any."""
    result = np.zeros(len(facts))
    for index, one in enumerate(facts):
        calls = one.collectives
        here = (calls.operation == Operation.ALL_TO_ALL) & (calls.bytes > 0)
        result[index] = calls.bytes[here].sum() / max(len(one.steps.number), 1)
    return result if result.any() else None


def expert_note(facts: Sequence[RankFacts]) -> str:
    """How uneven the experts' load is, in a sentence; "" without all-to-all calls."""
    found = expert_bytes(facts)
    if found is None or len(found) < 2 or not found.mean():
        return ""
    most = int(found.argmax())
    return (
        f"Ranks exchange {found.mean() / 2**20:,.1f} MiB a step with the experts; rank {facts[most].rank} "
        f"{found[most] / found.mean():.2f} times the mean."
    )
