"""Who delays whom: GPU time that others wait and what repairs win, by rank, with significance and cause.

A rank may owe much and win little: where many are nearly as late, repairing one does not shorten the step.

The last member of a collective makes the others wait. Where it came late because it waited itself, in another group or
for a send, its share of the debt goes on to those whom it waited for, and so on (delay costs of Böhme et al.,
Identifying the root causes of wait states in large-scale parallel applications, ICPP 2010). The charges
add up to the waiting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import kinds_of, others_of, rank_sets
from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.answers.causes import cause_of, of_slow_host
from tb_dlprof_plugin.fleet.answers.collectives import SlowLink, slow_links
from tb_dlprof_plugin.fleet.answers.pipeline import Pipeline
from tb_dlprof_plugin.fleet.answers.replay import Wave
from tb_dlprof_plugin.fleet.answers.scenarios import UNRELIABLE_PERCENT, Scenarios
from tb_dlprof_plugin.fleet.job import Delay
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

MOST = 8
"""Ranks that are repaired one by one."""
MANY_CALLS, FEWER = 2_000_000, 2
"""With so many calls a replay takes a second."""
WORTH = 0.01
"""Of the step: less is within what step times vary by."""
CHANCE = 0.01
"""Probability that a rank is last as often by chance, one in n each time, below which it is none."""
_OF_GPU = ("slow_gpu", "uneven_data", "expert_load")
LEAST_STEPS = 3
_LEAST_MS = 1e-6
"""That a repair wins: times are whole nanoseconds, and less is the error of floating point."""
STANDARD_ERRORS = 4.5
"""Of a rank's mean excess over the next one, from which it is steady: 98 % with three steps, 99.9 % with ten (one-sided
Student's t). Fewer steps show no spread."""
OUTLIER = 3.5
"""Modified z-score (Iglewicz and Hoaglin, 1993) of a rank's own time from which it is an outlier of three or more."""


def delays(facts: Sequence[RankFacts], scenarios: Scenarios, pipeline: Pipeline | None) -> list[Delay]:
    """The ranks that cost most, worst first: those whose repair wins significantly, then by what they owe."""
    calls, step = scenarios.calls, scenarios.step
    if step is None or calls.ranks < 2 or not calls.steps:
        return []
    scale = step.ms / max(scenarios.recorded_ns / 1e6, 1e-9)
    charges = charged(calls, scenarios.order) / 1e6 * scale
    caused_ms = charges.mean(axis=0)
    # Links and stages have members that owe nothing by coming late.
    linked = {rank.index: rank for rank in slow_links(facts, calls)}
    most = MOST if len(calls.rank) < MANY_CALLS else FEWER
    worst = [int(index) for index in np.argsort(-caused_ms, kind="stable")[:most] if caused_ms[index] > 0]
    rows = [_of_rank(facts, scenarios, index, charges, caused_ms) for index in worst]
    rows += _of_stage(facts, scenarios, pipeline)
    if linked:
        rows += _of_links(facts, scenarios, list(linked.values()))
    best: dict[int, Delay] = {}
    for row in sorted(rows, key=_order):
        best.setdefault(row.rank, row)
    hosts = {rank.rank: rank.host for rank in facts}
    return [replace(delay, host=hosts[delay.rank]) for delay in sorted(best.values(), key=_order)]


def _order(row: Delay) -> tuple[bool, float, float]:
    return not row.significant, -row.winnable_ms if row.significant else 0.0, -row.owed_ms


def _of_rank(facts: Sequence[RankFacts], scenarios: Scenarios, index: int, charges: Floats, caused_ms: Floats) -> Delay:
    step = scenarios.step
    assert step is not None
    same = np.flatnonzero(scenarios.classes == scenarios.classes[index])
    others = others_of(scenarios.classes, index)
    explained = cause_of(facts, index, others, scenarios.calls.numbers, charges[:, index])
    potential_ms = _won(scenarios, lambda paced: paced.repaired_ms(index, of_gpu=explained.cause in _OF_GPU))
    worth = potential_ms >= WORTH * step.ms
    certain = _not_chance(charges, index) or _outlier(scenarios, index, same)
    delay = scenarios.host_delay_ns(index)
    if explained.cause == "slow_host" and delay is not None:
        explained = of_slow_host(delay / 1e6, potential_ms, step.ms)
        # It is late by its own doing in each step.
        certain |= bool((delay / 1e6 >= WORTH * step.ms).all())
    # A pause that is measured, or work that differs, is no chance even if it comes in few steps.
    late = int((charges[:, index] >= WORTH * step.ms).sum())
    certain |= explained.cause in ("uneven_data", "expert_load") and late > 1
    certain |= explained.cause in ("garbage_collection", "slow_input") and late > 0
    if explained.cause == "slow_host" and delay is None:
        # The profiler delays each host by its own amount: what it added to the step may be all that is seen.
        certain &= potential_ms > scenarios.recorder_ms
    return Delay(
        facts[index].rank,
        float(caused_ms[index]),
        potential_ms,
        explained.cause,
        explained.why,
        bool(worth and certain and explained.measured),
    )


def _won(scenarios: Scenarios, asked: Callable[[Scenarios], float | None]) -> float:
    won = scenarios.won_ms(asked) or 0.0
    return won if won >= _LEAST_MS else 0.0


def repaired_by(facts: Sequence[RankFacts], delay: Delay) -> Callable[[Scenarios], float | None]:
    """The step with this rank repaired."""
    index = [rank.rank for rank in facts].index(delay.rank)
    return lambda scenarios: scenarios.repaired_ms(index, of_gpu=delay.cause in _OF_GPU)


def _not_chance(charges: Floats, index: int) -> bool:
    """Whether the rank owes most in more steps than chance explains, or steadily more than the others do."""
    steps, ranks = charges.shape
    most = int((charges.argmax(axis=1) == index).sum())
    share = 1 / ranks
    chance = sum(math.comb(steps, k) * share**k * (1 - share) ** (steps - k) for k in range(most, steps + 1))
    if chance < CHANCE:
        return True
    if steps < LEAST_STEPS:
        return False
    more = charges[:, index] - np.delete(charges, index, axis=1).max(axis=1)
    spread = float(more.std(ddof=1)) / np.sqrt(steps)
    return bool(more.mean() > 0 and more.mean() > STANDARD_ERRORS * spread)


def _outlier(scenarios: Scenarios, index: int, same: Ints) -> bool:
    """Whether its own time stands out from those of ranks with the same work; never with fewer than three."""
    if len(same) < 3:
        return False
    own = scenarios.own_ns
    median = float(np.median(own[same]))
    # No less than a thousandth: ranks that agree to the microsecond have no outliers.
    deviation = max(float(np.median(np.abs(own[same] - median))), 0.001 * median)
    return 0.6745 * (float(own[index]) - median) / deviation > OUTLIER


def _of_stage(facts: Sequence[RankFacts], scenarios: Scenarios, pipeline: Pipeline | None) -> list[Delay]:
    """The ranks of a stage that has more work than the others."""
    step = scenarios.step
    if pipeline is None or step is None or pipeline.slowest_stage is None:
        return []
    potential_ms = _won(scenarios, lambda paced: paced.even_stages_ms)
    if abs(scenarios.error_percent or 0.0) > UNRELIABLE_PERCENT:
        # A step is at least as long as the work of its longest stage.
        potential_ms = min(potential_ms, pipeline.excess_ns / max(scenarios.calls.steps, 1) / 1e6)
    members = [index for index, stage in enumerate(pipeline.stages) if stage == pipeline.slowest_stage]
    others = len(facts) - len(members)
    more = 100 * (pipeline.imbalance - 1)
    why = f"Stage {pipeline.slowest_stage} has {more:.0f} % more work than the mean of the stages."
    return [
        Delay(
            facts[index].rank,
            potential_ms * others / len(members),
            potential_ms,
            "uneven_stage",
            why,
            potential_ms >= WORTH * step.ms,
        )
        for index in members
    ]


def _of_links(facts: Sequence[RankFacts], scenarios: Scenarios, links: list[SlowLink]) -> list[Delay]:
    step, calls = scenarios.step, scenarios.calls
    assert step is not None
    factor = np.ones(len(calls.rank))
    for link in links:
        factor[link.rows] = 1 / link.slowdown
    potential_ms = _won(scenarios, lambda paced: paced.transfers_ms(factor))
    waits = len(facts) - 1
    return [
        Delay(
            facts[link.index].rank,
            potential_ms * waits / len(links),
            potential_ms,
            "slow_link",
            link.why,
            potential_ms >= WORTH * step.ms,
        )
        for link in links
    ]


def charged(calls: JobCalls, order: list[Wave]) -> Floats:
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
        due = debt[at] + np.where(calls.coupled[rows[wave.begin]], more, 0.0)
        some = due > 0
        last, share = late[at[some]], passed[at[some]]
        kept = due[some] * (1 - share)
        np.add.at(result, (calls.step[last], calls.rank[last]), kept)
        on = share > 0
        last, share, debt_on = last[on], share[on], due[some][on]
        begin = since[at[some][on]]
        amount = debt_on * share / (whole[last] - whole[begin])
        # The rows from ``begin`` to the one before ``last``, seen from behind.
        np.add.at(change, last - 1, amount)
        np.add.at(change, begin - 1, -amount)
    return result


def _last_members(calls: JobCalls) -> tuple[Ints, Floats]:
    """Per collective the row of the member that came last, and by how much the others came earlier on average (ns)."""
    size = np.bincount(calls.collective)
    late = np.zeros(len(size), dtype=np.int64)
    shortest = np.flatnonzero(~calls.coupled | (calls.duration == calls.transfer))
    # Of equal ones the first: what is assigned last stays.
    late[calls.collective[shortest[::-1]]] = shortest[::-1]
    total = np.bincount(calls.collective, weights=calls.duration)
    lateness = (total - size * calls.duration[late]) / np.maximum(size - 1, 1)
    return late, lateness


def _passed_on(calls: JobCalls, late: Ints, lateness: Floats) -> tuple[Floats, Ints]:
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
    waits = (lateness > 0) & (size > 1) & (waited[late] > 0)
    passed[waits] = np.minimum(more[waits] / lateness[waits], 1.0)
    return passed, before[late]


def _groups(calls: JobCalls) -> tuple[Ints, bool]:
    """Per row a number for the set of ranks that share its collective; whether there are several sets."""
    total = rank_sets(calls)
    number, example = kinds_of(np.where(calls.coupled, total, -1))
    return np.where(calls.coupled, number, -1), int((total[example] >= 0).sum()) > 1


def _before_in_group(calls: JobCalls, group: Ints) -> Ints:
    """Per row the row after the one in which the same group last met, on the same rank; else its rank's first row."""
    order = np.lexsort((np.arange(len(group)), group, calls.rank))
    same = np.r_[False, (group[order][1:] == group[order][:-1]) & (calls.rank[order][1:] == calls.rank[order][:-1])]
    before = calls.first[:-1][calls.rank].copy()
    before[order[same]] = order[np.flatnonzero(same) - 1] + 1
    return before
