"""Whether a rank's host is slower than that of ranks which wait for it, from when the hosts launched their collectives.

A host that does not wait for its GPU runs ahead, and its lead stays for good: a rank that began 40 ms later is last in
every collective though its host is as fast. The hosts' own pace tells them apart, or a host that waits for its GPU in
every step, which has no lead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints

SLOWER = 1.1
"""A host's time from step to step over the others', from which it is slower. Ours: while the profiler records, hosts of
equal ranks differ by 7 %."""


def is_slower(facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints) -> bool | None:
    """None where launches are not recorded, or there are too few steps.

    True too where the others' hosts wait for their GPUs in most steps: then lateness in a step is made in that step.
    """
    pace = _pace(facts[index], numbers)
    rest = [facts[other] for other in others.tolist()]
    paces = [_pace(one, numbers) for one in rest]
    if pace is None or any(one is None for one in paces):
        return None
    if 2 * sum(_waits_for_gpu(one, numbers) for one in rest) > len(rest):
        return True
    return pace >= SLOWER * float(np.median([one for one in paces if one is not None]))


def _first_launches(one: RankFacts, numbers: Ints) -> tuple[Ints, Ints] | None:
    """Rows of the first and the last call of each step; None where a step has none or launches are unknown."""
    calls = one.collectives
    steps = np.flatnonzero(np.isin(one.steps.number, numbers))
    if len(steps) < 2 or (calls.launched_ns < 0).any() or not np.isin(steps, calls.iteration).all():
        return None
    first = np.array([np.flatnonzero(calls.iteration == step)[0] for step in steps])
    last = np.array([np.flatnonzero(calls.iteration == step)[-1] for step in steps])
    return first, last


def _pace(one: RankFacts, numbers: Ints) -> float | None:
    """Mean time of the host from a step's first call to the next step's (ns)."""
    rows = _first_launches(one, numbers)
    if rows is None:
        return None
    return float(np.diff(one.collectives.launched_ns[rows[0]]).mean())


def _waits_for_gpu(one: RankFacts, numbers: Ints) -> bool:
    """Whether the host launched most steps' first call after the last call of the step before had ended."""
    rows = _first_launches(one, numbers)
    if rows is None:
        return False
    calls = one.collectives
    end = calls.start_ns[rows[1]] + calls.duration_ns[rows[1]]
    return bool((calls.launched_ns[rows[0][1:]] >= end[:-1]).mean() > 0.5)
