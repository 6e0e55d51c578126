"""Charges waiting to its causes: GPU time that ranks lose to each rank, and to whom a messenger's own delay is due.

The last member of a collective makes the others wait. Where it came late because it waited itself, in another group or
for a send, its share of the debt goes on to those whom it waited for, and so on (delay costs of Böhme et al.,
Identifying the root causes of wait states in large-scale parallel applications, ICPP 2010). The charges
add up to the waiting.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.numbering import numbered
from tb_dlprof_plugin.fleet.answers.replay import Wave
from tb_dlprof_plugin.model.profile import Floats, Ints


def charged(calls: Calls, order: list[Wave]) -> Floats:
    """GPU time (ns) that others wait because of a rank, by step and rank; sums over the chosen steps.

    Waiting of a pipeline's bubble is charged on only: by itself it is due to the schedule.
    """
    result = np.zeros((max(calls.steps, 1), calls.ranks))
    waiting = np.where(calls.bubble, 0, calls.waiting).astype(np.float64)
    if not waiting.any():
        return result
    late, lateness = _last_members(calls)
    collectives = int(calls.collective.max()) + 1
    debt = np.bincount(calls.collective, weights=np.where(calls.coupled, waiting, 0.0), minlength=collectives)
    passed, since = _passed_on(calls, late, lateness)
    if not passed.any():
        rows = late[debt > 0]
        np.add.at(result, (calls.step[rows], calls.rank[rows]), debt[debt > 0])
        return result
    # Debt per ns of waiting that a rank passes on to the calls before: charged from the last wave to the first.
    density, change = np.zeros(calls.ranks), np.zeros(len(calls.rank) + 1)
    whole = np.r_[0.0, np.cumsum(calls.waiting)]
    for wave in reversed(order):
        rows = wave.rows
        density[wave.rank] += change[rows]
        more = np.add.reduceat(density[wave.rank] * calls.waiting[rows], wave.begin)
        at = calls.collective[rows[wave.begin]]
        owed = debt[at] + np.where(calls.coupled[rows[wave.begin]], more, 0.0)
        some = owed > 0
        last, share = late[at[some]], passed[at[some]]
        kept = owed[some] * (1 - share)
        np.add.at(result, (calls.step[last], calls.rank[last]), kept)
        on = share > 0
        last, share, owed_on = last[on], share[on], owed[some][on]
        begin = since[at[some][on]]
        amount = owed_on * share / (whole[last] - whole[begin])
        # The rows from ``begin`` to the one before ``last``, seen from behind.
        np.add.at(change, last - 1, amount)
        np.add.at(change, begin - 1, -amount)
    return result


def _last_members(calls: Calls) -> tuple[Ints, Floats]:
    """Per collective the row of the member that came last, and by how much the others came earlier on average (ns)."""
    order = np.lexsort((calls.duration, calls.collective))
    size = np.bincount(calls.collective)
    begin = np.cumsum(size) - size
    late = order[begin]
    total = np.bincount(calls.collective, weights=calls.duration)
    lateness = (total - size * calls.duration[late]) / np.maximum(size - 1, 1)
    return late, lateness


def _passed_on(calls: Calls, late: Ints, lateness: Floats) -> tuple[Floats, Ints]:
    """Per collective the share of its debt that its last member passes on, and the row from which it waited for it.

    That is the last member's waiting since the members last ended together, beyond the mean waiting of the others.
    """
    collectives = len(late)
    passed, since = np.zeros(collectives), np.zeros(collectives, dtype=np.int64)
    group, several = _groups(calls)
    if not several:
        return passed, since
    before = _before_in_group(calls, group)
    whole = np.r_[0.0, np.cumsum(calls.waiting)]
    rows = np.arange(len(calls.rank))
    waited = whole[rows] - whole[before]
    size = np.bincount(calls.collective)
    others = (np.bincount(calls.collective, weights=waited) - waited[late]) / np.maximum(size - 1, 1)
    more = np.maximum(waited[late] - others, 0)
    known = (lateness > 0) & (size > 1) & (waited[late] > 0)
    passed[known] = np.minimum(more[known] / lateness[known], 1.0)
    return passed, before[late]


def _groups(calls: Calls) -> tuple[Ints, bool]:
    """Per row a number for the set of ranks that share its collective; whether there are several sets."""
    marks = np.random.default_rng(0).integers(1, 2**40, calls.ranks)
    total = np.bincount(calls.collective, weights=marks[calls.rank]).astype(np.int64)[calls.collective]
    number, example = numbered(np.where(calls.coupled, total, -1))
    return np.where(calls.coupled, number, -1), int((total[example] >= 0).sum()) > 1


def _before_in_group(calls: Calls, group: Ints) -> Ints:
    """Per row the row after the one in which the same group last met, on the same rank; else its rank's first row."""
    order = np.lexsort((np.arange(len(group)), group, calls.rank))
    same = np.r_[False, (group[order][1:] == group[order][:-1]) & (calls.rank[order][1:] == calls.rank[order][:-1])]
    before = calls.first[:-1][calls.rank].copy()
    before[order[same]] = order[np.flatnonzero(same) - 1] + 1
    return before
