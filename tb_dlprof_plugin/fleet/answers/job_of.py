"""The answers about a job from the facts of its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from tb_dlprof_plugin.fleet.answers.account import account, recorded_account
from tb_dlprof_plugin.fleet.answers.calls import Calls, calls_of, common_steps
from tb_dlprof_plugin.fleet.answers.collective_table import collective_rows
from tb_dlprof_plugin.fleet.answers.delays import delays
from tb_dlprof_plugin.fleet.answers.efficiency import efficiency
from tb_dlprof_plugin.fleet.answers.experts import expert_note
from tb_dlprof_plugin.fleet.answers.heat import heat
from tb_dlprof_plugin.fleet.answers.pipeline import Pipeline, pipeline
from tb_dlprof_plugin.fleet.answers.scenarios_of import scenarios_of
from tb_dlprof_plugin.fleet.answers.sentence import sentence
from tb_dlprof_plugin.fleet.answers.what_if import UNRELIABLE_PERCENT, Scenarios
from tb_dlprof_plugin.fleet.clocks import align
from tb_dlprof_plugin.fleet.job import Delay, Job, JobStep, WhatIf
from tb_dlprof_plugin.fleet.matching import Matched, match
from tb_dlprof_plugin.fleet.matching_alike import match_alike
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Collectives, RankFacts
from tb_dlprof_plugin.model.profile import Ints

CLOCK_CALLS = 200_000
_TIMED = ("measured", "light")
"""Sources of a step (`simulation.estimate`) that were timed, not estimated."""
MOST_CALLS = 10_000_000
"""Calls of all ranks together that are compared: they take a core 16 seconds, and 2.5 GB. A slowdown is nearly the same
in all steps of a job (Lin et al., OSDI'25), so that fewer steps answer the same."""
REPAIRED = 3
"""Ranks whose repair is listed among the changes."""


def job_of(facts: Sequence[RankFacts], notes: Sequence[str] = ()) -> Job:
    """Everything about the job of these ranks.

    Args:
        facts: of each rank.
        notes: sentences about ranks that could not be read.

    Raises:
        ValueError: there is no rank, or two are the same one.
    """
    facts = sorted(facts, key=lambda one: one.rank)
    ranks = [one.rank for one in facts]
    if not facts:
        raise ValueError("A job has at least one rank.")
    if len(set(ranks)) != len(ranks):
        twice = sorted({rank for rank in ranks if ranks.count(rank) > 1})
        raise ValueError(f"Rank {twice[0]} is there {ranks.count(twice[0])} times; name one recording of each rank.")
    world = max(max(one.world_size for one in facts), max(ranks) + 1, len(facts))
    missing = sorted(set(range(world)) - set(ranks))
    whole, numbers = facts, common_steps(facts)
    facts, numbers = _fewer_steps(facts, numbers)
    matched = match_alike(facts) or match(facts)
    calls = calls_of(facts, matched, numbers)
    recorded = recorded_account(facts, calls)
    step = _step(facts, calls)
    rows = account(facts, recorded, calls, step)
    scenarios = scenarios_of(facts, matched, calls, step)
    stages = pipeline(facts, calls, recorded)
    worst = delays(facts, scenarios, stages)
    changes = _what_if(scenarios, worst, stages)
    mesh = _mesh(facts)
    return Job(
        world_size=world,
        ranks=ranks,
        missing_ranks=missing,
        sentence=sentence(step, rows, worst, changes),
        step=step,
        account=rows,
        delays=worst,
        what_if=changes,
        simulated_error_percent=scenarios.error_percent if len(calls.rank) else None,
        collectives=matched.matching,
        collective_rows=collective_rows(facts, calls),
        clock=align(facts, _fewer(matched)).summary(),
        efficiency=efficiency(scenarios),
        heat=heat(whole, common_steps(whole)),
        mesh=mesh,
        mesh_places=[tuple(dict(one.mesh).get(name, UNKNOWN) for name, _ in mesh) for one in facts],
        notes=[*notes, *_notes(facts, missing, calls, scenarios, stages), *_of_fewer(whole, calls)],
    )


def _fewer_steps(facts: Sequence[RankFacts], numbers: Ints) -> tuple[Sequence[RankFacts], Ints]:
    """Of a job with more than `MOST_CALLS` the calls of fewer steps, those next to the one of median length."""
    total = sum(len(one.collectives) for one in facts)
    if total <= MOST_CALLS or len(numbers) < 2:
        return facts, numbers
    count = max(1, len(numbers) * MOST_CALLS // total)
    lengths = facts[0].steps.end_ns - facts[0].steps.start_ns
    middle = np.argsort(np.abs(lengths - np.median(lengths)), kind="stable")
    chosen = np.sort(
        [number for number in facts[0].steps.number[middle].tolist() if number in set(numbers.tolist())][:count]
    )
    return [_cut(one, chosen) for one in facts], chosen


def _cut(one: RankFacts, numbers: Ints) -> RankFacts:
    rows = np.flatnonzero(np.isin(one.steps.number, numbers)[one.collectives.iteration])
    # Rows are in order of steps nearly always: a slice copies nothing.
    whole: Ints | slice = rows
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        whole = slice(int(rows[0]), int(rows[-1]) + 1)
    columns = {column.name: getattr(one.collectives, column.name)[whole] for column in fields(Collectives)}
    return replace(one, collectives=Collectives(**columns))


def _step(facts: Sequence[RankFacts], calls: Calls) -> JobStep | None:
    """Of the ranks' estimates the median of those that were measured, else that of the rank that waits least.

    Synchronous ranks have one step. Where a rank waits, its own estimate holds what the profiler delays the others by.
    Without any estimate the step is as recorded, as its source says.
    """
    known = [(index, one.step_length) for index, one in enumerate(facts) if one.step_length is not None]
    measured = sorted((one for _, one in known if one.source in _TIMED), key=lambda one: one.ms)
    if measured:
        middle = measured[len(measured) // 2]
        return JobStep(middle.ms, measured[0].low_ms, measured[-1].high_ms, middle.source)
    if known:
        waits = calls.per_rank(calls.waiting)
        chosen = min(known, key=lambda one: waits[one[0]])[1]
        return JobStep(chosen.ms, chosen.low_ms, chosen.high_ms, chosen.source)
    if not calls.steps or not calls.length.any():
        return None
    ms = float(np.median(calls.length[calls.length > 0])) / calls.steps / 1e6
    return JobStep(ms, ms, ms, "recorded")


def _what_if(scenarios: Scenarios, worst: Sequence[Delay], stages: Pipeline | None) -> list[WhatIf]:
    step, calls = scenarios.step, scenarios.calls
    if step is None or not calls.coupled.any():
        return []
    found: list[tuple[str, float | None]] = [
        (f"rank {one.rank} as fast as the others", step.ms - one.winnable_ms)
        for one in worst[:REPAIRED]
        if one.cause not in ("uneven_stage", "slow_link")
    ]
    if stages is not None:
        found.append(("even pipeline stages", scenarios.even_stages_ms))
    found += [
        ("all ranks with equal work", scenarios.even_ms),
        ("network twice as fast", scenarios.transfers_ms(0.5)),
        ("network without transfer time", scenarios.free_network_ms),
        ("no exposed communication", scenarios.hidden_ms),
    ]
    return [scenarios.row(change, ms) for change, ms in found if ms is not None]


def _of_fewer(whole: Sequence[RankFacts], calls: Calls) -> list[str]:
    steps = len(common_steps(whole))
    if calls.steps == steps:
        return []
    return [f"Calls are compared in {calls.steps} of the {steps} recorded steps: the job has too many for all of them."]


def _fewer(matched: Matched) -> Matched:
    """At most `CLOCK_CALLS` calls, of collectives that are spread evenly: clocks need no more."""
    every = -(-len(matched.rank_index) // CLOCK_CALLS)
    if every < 2:
        return matched
    chosen = np.arange(0, len(matched), every)
    size = np.diff(matched.first)[chosen]
    first = np.concatenate(([0], np.cumsum(size)))
    at = np.repeat(matched.first[chosen] - first[:-1], size) + np.arange(int(first[-1]))
    return replace(
        matched,
        first=first,
        rank_index=matched.rank_index[at],
        row=matched.row[at],
        iteration=matched.iteration[chosen],
        operation=matched.operation[chosen],
    )


def _mesh(facts: Sequence[RankFacts]) -> list[tuple[str, int]]:
    """Dimensions with their sizes, as far as the recorded ranks show them."""
    sizes: dict[str, int] = {}
    for one in facts:
        for name, place in one.mesh:
            sizes[name] = max(sizes.get(name, 0), place + 1)
    return list(sizes.items())


def _notes(
    facts: Sequence[RankFacts],
    missing: Sequence[int],
    calls: Calls,
    scenarios: Scenarios,
    stages: Pipeline | None,
) -> list[str]:
    notes = []
    if len(facts) == 1:
        notes.append(
            "One rank alone does not show whether communication is transfer or waiting for others: exposed "
            "communication is listed as transfer. Who delays whom, and what a repair wins, needs recordings of the "
            "other ranks."
        )
    elif missing:
        listed = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        notes.append(
            f"{len(missing)} of {len(facts) + len(missing)} ranks are missing ({listed}). What is said holds among the "
            "recorded ones: where a missing rank comes last, its delay counts as transfer, and it cannot be named."
        )
    if len(facts) > 1 and not calls.steps:
        notes.append("The ranks recorded no step in common, so nothing can be compared between them.")
    elif len(facts) > 1 and not calls.coupled.any():
        notes.append("No collective was found on two ranks: waiting cannot be separated from transfer.")
    error = scenarios.error_percent
    if error is not None and abs(error) > UNRELIABLE_PERCENT and len(calls.rank):
        notes.append(
            f"Replayed as recorded the step is {error:+.1f} % off: what changes would win is not reliable here."
        )
    if stages is not None:
        formula = (
            ""
            if stages.formula_percent is None
            else f"; {stages.formula_percent:.1f} % with {stages.microbatches} microbatches on even stages"
        )
        notes.append(f"Pipeline bubble: {stages.bubble_percent:.1f} % of the step{formula}.")
    experts = expert_note(facts)
    if experts:
        notes.append(experts)
    for one in facts:
        notes += [note for note in one.notes if note not in notes]
    return notes
