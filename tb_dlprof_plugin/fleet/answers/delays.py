"""Who delays whom: GPU time that others wait and what repairs win, by rank, with significance and cause.

A rank may owe much and win little: where many are nearly as late, repairing one does not shorten the step.

The last member of a collective makes the others wait. Where it came late because it waited itself, in another group or
for a send, its share of the debt goes on to those whom it waited for, and so on (delay costs of Böhme et al.,
Identifying the root causes of wait states in large-scale parallel applications, ICPP 2010). The charges
add up to the waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import compared_with, kinds_of, rank_sets
from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.answers.causes import OF_HOST, cause_of
from tb_dlprof_plugin.fleet.answers.collectives import SlowLink, slow_links
from tb_dlprof_plugin.fleet.answers.lateness import Lateness
from tb_dlprof_plugin.fleet.answers.pipeline import Pipeline
from tb_dlprof_plugin.fleet.answers.replay import Wave
from tb_dlprof_plugin.fleet.answers.scenarios import SAVING_ERROR, UNRELIABLE_PERCENT, Scenarios
from tb_dlprof_plugin.fleet.job import Delay
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

MOST = 8
"""Ranks that are repaired one by one."""
MANY_CALLS, FEWER = 2_000_000, 2
"""With so many calls a replay takes a second."""
WORTH = 0.01
"""Of the step: less is within what step times vary by."""
_LEAST_MS = 1e-6
"""That a repair wins: times are whole nanoseconds, and less is the error of floating point."""


def delays(
    facts: Sequence[RankFacts], scenarios: Scenarios, late: Lateness, pipeline: Pipeline | None, *, sure: bool = True
) -> list[Delay]:
    """The ranks that cost most, worst first: certain ones by what a repair saves, then by the waiting that they cause.

    Args:
        facts: of all ranks.
        scenarios: replays of the job.
        late: by how much each of its ranks is.
        pipeline: the job's; None without one.
        sure: whether all is there that certainty needs.
    """
    calls, step = scenarios.calls, scenarios.step
    assert step is not None
    scale = step.ms / max(scenarios.recorded_ns / 1e6, 1e-9)
    caused_ms = charged(calls, scenarios.order).mean(axis=0) / 1e6 * scale
    # Links and stages have members that no other rank waits for.
    linked = slow_links(facts, calls)
    most = MOST if len(calls.rank) < MANY_CALLS else FEWER
    worst = [int(index) for index in np.argsort(-caused_ms, kind="stable")[:most] if caused_ms[index] > 0]
    beyond = np.flatnonzero(late.beyond_chance(of_host=False) | late.beyond_chance(of_host=True)).tolist()
    worst += sorted(set(beyond) - set(worst), key=lambda index: -late.mean_ns(index))[:most]
    rows = [_of_rank(facts, scenarios, late, index, float(caused_ms[index])) for index in worst]
    certain = {row.rank for row in rows if row.certain}
    # What a rank's own GPU or host makes slow is no matter of layers.
    rows += [row for row in _of_stage(facts, scenarios, pipeline) if row.rank not in certain]
    if linked:
        rows += _of_links(facts, scenarios, linked)
    best: dict[int, Delay] = {}
    for row in sorted(rows, key=_order):
        best.setdefault(row.rank, row)
    hosts = {rank.rank: rank.host for rank in facts}
    if not sure:
        best = {number: replace(row, certain=False) for number, row in best.items()}
    return [replace(delay, host=hosts[delay.rank]) for delay in sorted(best.values(), key=_order)]


def _order(row: Delay) -> tuple[bool, float, float]:
    return not row.certain, -row.saving_ms if row.certain else 0.0, -row.caused_waiting_ms


def _of_rank(facts: Sequence[RankFacts], scenarios: Scenarios, late: Lateness, index: int, caused_ms: float) -> Delay:
    step = scenarios.step
    assert step is not None
    others = compared_with(scenarios.classes, index)
    explained = cause_of(facts, index, others, scenarios.calls.numbers, late)
    of_host, excess_ms = explained.cause in OF_HOST, max(explained.excess_ms, 0.0)
    saving = _saving(scenarios, lambda paced: paced.repaired_ms(index, not of_host, excess_ms * 1e6))
    # No repair takes more from a step than the rank has in excess.
    if explained.cause != "unknown":
        point = min(saving.ms, excess_ms)
        low_ms = min(saving.low_ms, point * (1 - SAVING_ERROR))
        saving = _Saving(point, low_ms, min(saving.high_ms, excess_ms * (1 + SAVING_ERROR)))
    # Where it depends on the hosts' pace whether anything is saved, nothing is certain.
    certain = explained.certain and saving.ms >= WORTH * step.ms and saving.low_ms > 0.1 * WORTH * step.ms
    if of_host and not late.launches:
        # The profiler delays each host by its own amount: what it added to the step may be all that is seen.
        certain &= saving.ms > scenarios.recorder_ms
    return Delay(facts[index].rank, caused_ms, *saving, explained.cause, explained.why, certain)


class _Saving(NamedTuple):
    """What a repair saves (ms), with its interval."""

    ms: float
    low_ms: float
    high_ms: float


def _saving(scenarios: Scenarios, asked: Callable[[Scenarios], float | None]) -> _Saving:
    """From the same replays with and without the change: what both have wrong is not part of the difference."""
    saved = scenarios.saved_ms(asked)
    return _Saving(*(one if one >= _LEAST_MS else 0.0 for one in saved)) if saved else _Saving(0.0, 0.0, 0.0)


def _of_stage(facts: Sequence[RankFacts], scenarios: Scenarios, pipeline: Pipeline | None) -> list[Delay]:
    """The ranks of a stage that has more work than the others."""
    step = scenarios.step
    if pipeline is None or step is None or pipeline.slowest_stage is None:
        return []
    saving = _saving(scenarios, lambda paced: paced.even_stages_ms)
    if abs(scenarios.error_percent or 0.0) > UNRELIABLE_PERCENT:
        # A step is at least as long as the work of its longest stage.
        most_ms = pipeline.excess_ns / max(scenarios.calls.steps, 1) / 1e6
        saving = _Saving(*(min(one, most_ms) for one in saving))
    members = [index for index, stage in enumerate(pipeline.stages) if stage == pipeline.slowest_stage]
    others = len(facts) - len(members)
    more = 100 * (pipeline.imbalance - 1)
    why = f"Stage {pipeline.slowest_stage} has {more:.0f} % more work than the mean of the stages."
    return [
        Delay(
            facts[index].rank,
            saving.ms * others / len(members),
            *saving,
            "uneven_stage",
            why,
            saving.ms >= WORTH * step.ms,
        )
        for index in members
    ]


def _of_links(facts: Sequence[RankFacts], scenarios: Scenarios, links: list[SlowLink]) -> list[Delay]:
    step, calls = scenarios.step, scenarios.calls
    assert step is not None
    factor = np.ones(len(calls.rank))
    for link in links:
        factor[link.rows] = 1 / link.slowdown
    saving = _saving(scenarios, lambda paced: paced.transfers_ms(factor))
    waits = len(facts) - 1
    return [
        Delay(
            facts[link.index].rank,
            saving.ms * waits / len(links),
            *saving,
            "slow_link",
            link.why,
            saving.ms >= WORTH * step.ms,
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
