"""The answers about a job from the facts of its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.answers.account import (
    account,
    efficiency,
    heat,
    job_work,
    recorded_account,
    recorded_account_of_all,
)
from tb_dlprof_plugin.fleet.answers.calls import JobCalls, calls_of
from tb_dlprof_plugin.fleet.answers.collectives import collective_rows
from tb_dlprof_plugin.fleet.answers.delays import delays
from tb_dlprof_plugin.fleet.answers.gradient_buckets import other_buckets
from tb_dlprof_plugin.fleet.answers.lateness import lateness
from tb_dlprof_plugin.fleet.answers.more_gpus import Growth, more_gpus
from tb_dlprof_plugin.fleet.answers.pipeline import Pipeline, pipeline
from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.answers.sentences import host_notes, left_out, notes_on, sentence, stall_note
from tb_dlprof_plugin.fleet.answers.verdict import Compared, verdict, why_unknown
from tb_dlprof_plugin.fleet.chosen_ranks import ranks_with_room
from tb_dlprof_plugin.fleet.chosen_steps import MOST_CALLS as MOST_OF_STEPS
from tb_dlprof_plugin.fleet.chosen_steps import (
    Stall,
    common_steps,
    stalled_step,
    steps_with_room,
    whole_steps,
    with_calls_of,
)
from tb_dlprof_plugin.fleet.clocks import align
from tb_dlprof_plugin.fleet.job import Delay, Efficiency, Job, JobStep, Verdict, WhatIf
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.matching_alike import match_alike
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, RankFacts
from tb_dlprof_plugin.fleet.world import missing_of, world_of
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.simulation.estimate import SHORTEST_STEP_NS

_TIMED = ("measured", "light")
"""Sources of a step (`simulation.estimate`) that were timed, not estimated."""
_DOUBLED = Growth()
REPAIRED = 3
"""Ranks whose repair is listed among the changes."""


@dataclass(frozen=True, slots=True)
class ReplayedJob:
    """A job, and its replays for further questions: ``facts`` are those that `Scenarios.calls` refers to."""

    job: Job
    facts: list[RankFacts]
    scenarios: Scenarios


def job_of(
    facts: Sequence[RankFacts],
    notes: Sequence[str] = (),
    numbers: Ints | None = None,
    growth: Growth = _DOUBLED,
    unreadable: Sequence[str] = (),
) -> Job:
    """The job of `replayed_job`."""
    return replayed_job(facts, notes, numbers, growth, unreadable).job


def replayed_job(
    facts: Sequence[RankFacts],
    notes: Sequence[str] = (),
    numbers: Ints | None = None,
    growth: Growth = _DOUBLED,
    unreadable: Sequence[str] = (),
) -> ReplayedJob:
    """Everything about the job of these ranks.

    Args:
        facts: of each rank.
        notes: sentences about what else was found.
        numbers: of the steps whose calls are among the facts, where it is not all of them.
        growth: on how many GPUs more the job is asked about.
        unreadable: a sentence for each rank that could not be read.

    Raises:
        ValueError: there is no rank, or two are the same one.
    """
    facts = _by_rank(facts)
    ranks = [rank.rank for rank in facts]
    world = max(world_of((rank.world_size for rank in facts), ranks), len(facts))
    missing = missing_of(world, ranks)
    chosen = _chosen(facts, numbers)
    facts, compared, numbers = chosen.facts, chosen.compared, chosen.steady
    matched = match_alike(compared) or match(compared)
    calls = calls_of(compared, matched, numbers)
    recorded = recorded_account(compared, calls)
    scenarios = Scenarios(compared, matched, calls, _step(compared, calls))
    step = scenarios.step
    rows = account(compared, recorded, calls.steps, step, calls.per_rank(calls.coupled.astype(np.int64)) > 0)
    stages = pipeline(compared, calls, recorded)
    shape = stages.shape if stages is not None else None
    basis = Compared(compared, missing, matched.matching, calls.steps, len(unreadable))
    unknown = why_unknown(basis, step)
    # Who delays whom is a question about steps.
    late = lateness(scenarios) if step is not None and step.is_step and calls.ranks > 1 and calls.steps else None
    worst = [] if late is None else delays(compared, scenarios, late, stages, sure=not unknown)
    found = verdict(basis, step, worst, late, unknown)
    if chosen.ranks is not None:
        whole = recorded_account_of_all(facts, chosen.ranks, recorded, numbers)
        rows = account(facts, whole, calls.steps, step, np.ones(len(facts), dtype=np.bool_))
        share = int(recorded.waiting.sum()) / max(int(whole.waiting.sum()), 1) or 1.0
        worst = [replace(delay, caused_waiting_ms=delay.caused_waiting_ms / share) for delay in worst]
    changes = [] if unknown else _what_if(scenarios, worst, stages)
    larger, of_larger = ([], []) if unknown else more_gpus(compared, scenarios, growth)
    buckets, of_buckets = other_buckets(compared, scenarios) if changes else ([], [])
    mesh, places = _mesh(facts)
    job = Job(
        world_size=world,
        ranks=ranks,
        missing_ranks=missing,
        sentence=sentence(step, rows, found, all(rank.on_cpu for rank in facts)),
        verdict=found,
        step=step,
        account=rows,
        delays=worst,
        what_if=[*changes, *buckets, *larger],
        simulated_error_percent=scenarios.error_percent if len(calls.rank) else None,
        collectives=matched.matching,
        collective_rows=collective_rows(compared, calls),
        clock=align(compared, matched).summary(),
        efficiency=_without_waste(efficiency(scenarios), found),
        heat=heat(facts, chosen.common),
        mesh=mesh,
        mesh_places=places,
        notes=[
            *host_notes(facts, worst, step.ms if step else None),
            *unreadable,
            *notes,
            *notes_on(facts, missing, calls, scenarios, shape),
            *of_buckets,
            *of_larger,
            *left_out((len(chosen.common), chosen.kept, len(chosen.whole)), (len(facts), len(compared))),
            *stall_note(chosen.stall),
        ],
        pipeline=shape,
        work=job_work(facts, dict(mesh), world),
    )
    return ReplayedJob(job, list(compared), scenarios)


def _without_waste(factors: Efficiency, found: Verdict | None) -> Efficiency:
    """What uneven ranks waste is said where one of them is named: else they vary from step to step, as all do."""
    if found is not None and found.kind == "delays":
        return factors
    return replace(factors, wasted_gpu_share=None, wasted_gpu_hours_per_day=None)


def _by_rank(facts: Sequence[RankFacts]) -> list[RankFacts]:
    if not facts:
        raise ValueError("A job has at least one rank.")
    ranks = [rank.rank for rank in facts]
    twice = sorted({rank for rank in ranks if ranks.count(rank) > 1}) if len(set(ranks)) != len(ranks) else []
    if twice:
        raise ValueError(f"Rank {twice[0]} is there {ranks.count(twice[0])} times; name one recording of each rank.")
    return sorted(facts, key=lambda rank: rank.rank)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What of a job is compared.

    Attributes:
        facts: of all ranks, with the calls of some steps.
        compared: those whose calls are compared. ranks: their indices; None: all are.
        common: numbers of the steps that all ranks have. kept: of how many of them ``facts`` has the calls. whole: of
            those the ones in which no rank lacks calls. stall: one of these, which is left out.
    """

    facts: list[RankFacts]
    compared: list[RankFacts]
    ranks: Ints | None
    common: Ints
    kept: int
    whole: Ints
    stall: Stall | None

    @property
    def steady(self) -> Ints:
        """``whole`` without the step that stalled."""
        return self.whole if self.stall is None else self.whole[self.whole != self.stall.number]


def _chosen(facts: list[RankFacts], numbers: Ints | None) -> _Chosen:
    """As much as there is room for. ``numbers``: of the steps whose calls are among the facts; None: of all."""
    common = common_steps(facts)
    if numbers is None:
        some = steps_with_room(facts[0], sum(len(rank.collectives) for rank in facts), common)
        facts = facts if some is None else [with_calls_of(rank, some) for rank in facts]
        numbers = common if some is None else some
    else:
        numbers = common[np.isin(common, numbers)]
    ranks = ranks_with_room(facts, limit=MOST_OF_STEPS)
    compared = facts if ranks is None else [facts[index] for index in ranks.tolist()]
    whole = whole_steps(compared, numbers)
    return _Chosen(facts, compared, ranks, common, len(numbers), whole, stalled_step(compared, whole))


def _step(facts: Sequence[RankFacts], calls: JobCalls) -> JobStep | None:
    """Of the ranks' estimates the median of those that were measured, else that of the rank that waits least.

    Synchronous ranks have one step. Where a rank waits, its own estimate holds what the profiler delays the others by.
    Without any estimate the step is as recorded, as its source says. A step of next to nothing is a damaged
    recording's, and as if not known.
    """
    estimates = [(index, rank.step_length) for index, rank in enumerate(facts) if rank.step_length is not None]
    plausible = [(index, length) for index, length in estimates if length.ms * 1e6 >= SHORTEST_STEP_NS]
    measured = sorted((length for _, length in plausible if length.source in _TIMED), key=lambda length: length.ms)
    if measured:
        middle = measured[len(measured) // 2]
        return JobStep(middle.ms, measured[0].low_ms, measured[-1].high_ms, middle.source)
    if plausible:
        waits = calls.per_rank(calls.waiting)
        chosen = min(plausible, key=lambda estimate: waits[estimate[0]])[1]
        return JobStep(chosen.ms, chosen.low_ms, chosen.high_ms, chosen.source)
    if not calls.steps or not calls.length.any():
        return None
    ms = float(np.median(calls.length[calls.length > 0])) / calls.steps / 1e6
    return JobStep(ms, ms, ms, "recorded") if ms * 1e6 >= SHORTEST_STEP_NS else None


def _what_if(scenarios: Scenarios, worst: Sequence[Delay], stages: Pipeline | None) -> list[WhatIf]:
    step, calls = scenarios.step, scenarios.calls
    if step is None or not calls.coupled.any():
        return []
    # Of a delay that is not certain, what a repair saves is not known.
    certain = [delay for delay in worst if delay.certain]
    rows: list[WhatIf | None] = [
        scenarios.stated(f"rank {delay.rank} as fast as the others", delay.saving_ms)
        # A rank that is faster than the others would become as slow as they are.
        for delay in certain[:REPAIRED]
        if delay.cause not in ("uneven_stage", "slow_link")
    ]
    linked = [delay for delay in certain if delay.cause == "slow_link"]
    if linked:
        ranks = ", ".join(str(delay.rank) for delay in linked[:8]) + (", ..." if len(linked) > 8 else "")
        rows.append(scenarios.stated(f"links of ranks {ranks} as fast as the others", linked[0].saving_ms))
    if stages is not None:
        rows.append(scenarios.row("even pipeline stages", lambda paced: paced.even_stages_ms))
    rows += [
        scenarios.row("all ranks with equal work", lambda paced: paced.even_ms),
        scenarios.row("network twice as fast", lambda paced: paced.transfers_ms(0.5)),
        scenarios.row("network without transfer time", lambda paced: paced.free_network_ms),
        scenarios.row("no exposed communication", lambda paced: paced.hidden_ms),
    ]
    return [row for row in rows if row is not None]


def _mesh(facts: Sequence[RankFacts]) -> tuple[list[tuple[str, int]], list[tuple[int, ...]]]:
    """Dimensions with their sizes, as far as the recorded ranks show them, and each rank's place in them."""
    sizes: dict[str, int] = {}
    for rank in facts:
        for name, place in rank.mesh:
            sizes[name] = max(sizes.get(name, 0), place + 1)
    own = [dict(rank.mesh) for rank in facts]
    return list(sizes.items()), [tuple(place.get(name, UNKNOWN) for name in sizes) for place in own]
