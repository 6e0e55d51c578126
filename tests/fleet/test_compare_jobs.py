"""Two jobs compared: simulated ones whose difference is known, and recorded ones of two H200s."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.simulated_job import MS, Idle, ddp, pipeline_1f1b, simulate, tensor_and_data

from tb_dlprof_plugin import compare_jobs as compare_sources
from tb_dlprof_plugin import job_table
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs, paired_ranks
from tb_dlprof_plugin.fleet.several_jobs.comparison import JobComparison

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded"


def _ddp(ranks: int, **faults: object) -> Job:
    return job_of(simulate(ranks, ddp(ranks, **faults)))  # type: ignore[arg-type]


def _add_up(found: JobComparison) -> None:
    changes = [part.difference_ms for part in found.parts if part.difference_ms is not None]
    assert sum(changes) == pytest.approx(found.difference_ms, abs=1e-9)
    for row in found.rank_changes:
        assert row.candidate.step_ms - row.base.step_ms == pytest.approx(row.difference_ms, abs=1e-9)


def test_a_delay_is_new_and_the_parts_add_up_to_the_difference() -> None:
    even, late = _ddp(4), _ddp(4, slower={2: 1.2})
    found = compare_jobs(even, late, ("even", "late"))
    _add_up(found)
    parts = {part.part: part.difference_ms for part in found.parts}
    assert found.difference_ms > 0
    # A fifth more compute on one of four ranks, for which the other three wait.
    assert parts["waiting"] is not None
    assert parts["compute"] is not None
    # Buckets that compute hides in the even job are waited for, too, and less of them is exposed.
    assert 2 * parts["compute"] < parts["waiting"] < 3 * parts["compute"]
    (delay,) = found.delays
    assert (delay.what, delay.rank, delay.cause, delay.base_rank) == ("new", 2, "slow_gpu", None)
    assert found.sentence.startswith("A step of late takes ")
    assert "New: rank 2 delays the others, because its GPU" in found.sentence
    back = compare_jobs(late, even, ("late", "even"))
    assert [(one.what, one.base_rank) for one in back.delays] == [("gone", 2)]
    assert back.difference_ms == -found.difference_ms


def test_a_delay_stays_with_what_it_costs_now() -> None:
    found = compare_jobs(_ddp(4, slower={2: 1.3}), _ddp(4, slower={2: 1.2}))
    (delay,) = found.delays
    assert delay.what == "stays"
    assert delay.base_saving_ms is not None
    assert delay.saving_ms is not None
    assert delay.base_saving_ms > 1.3 * delay.saving_ms
    other_cause = compare_jobs(
        _ddp(4, slower={2: 1.3}), _ddp(4, idle=lambda rank, step: [Idle(6 * MS)] if rank == 2 else [])
    )
    assert [(one.what, one.cause) for one in other_cause.delays] == [("new", "slow_host"), ("gone", "slow_gpu")]


def test_jobs_of_other_sizes_are_compared_by_share_and_each_rank_counts_once() -> None:
    for before, after in ((2, 4), (4, 2), (3, 4), (4, 3), (1, 4)):
        found = compare_jobs(_ddp(before), _ddp(after, slower={after - 1: 1.2} if after > 1 else None))
        _add_up(found)
        assert found.paired_by == "share"
        weights = dict.fromkeys(range(before), 0.0)
        for row in found.rank_changes:
            assert sum(weight for _, weight in row.base_ranks) == pytest.approx(1)
            for rank, weight in row.base_ranks:
                weights[rank] += weight
        assert list(weights.values()) == pytest.approx([after / before] * before)
    assert found.sentence.startswith("A step of candidate on 4 GPUs in place of 1 takes ")


def test_ranks_at_the_same_place_of_the_mesh_correspond() -> None:
    first = simulate(4, tensor_and_data(2, 2), mesh=lambda rank: (("dp", rank // 2), ("tp", rank % 2)))
    turned = simulate(4, tensor_and_data(2, 2), mesh=lambda rank: (("dp", 1 - rank // 2), ("tp", rank % 2)))
    paired = paired_ranks(job_of(first), job_of(turned))
    assert paired.by == "mesh"
    assert {pair.rank: pair.base for pair in paired.pairs} == {
        0: ((2, 1.0),), 1: ((3, 1.0),), 2: ((0, 1.0),), 3: ((1, 1.0),),
    }  # fmt: skip
    other_mesh = [replace(one, mesh=(("dp", one.rank),)) for one in turned]
    assert paired_ranks(job_of(first), job_of(other_mesh)).by == "rank"


def test_missing_ranks_are_named_and_the_others_compared() -> None:
    found = compare_jobs(job_of(simulate(4, ddp(4))[:3]), _ddp(4), ("some", "all"))
    assert [row.rank for row in found.rank_changes] == [0, 1, 2]
    assert found.notes == ["1 of 4 ranks of some are missing.", "Rank 3 of all has no counterpart."]


def test_waiting_of_a_rank_alone_is_unknown_and_transfer_holds_it_on_both_sides() -> None:
    found = compare_jobs(job_of(simulate(4, ddp(4))[:1]), _ddp(4, slower={3: 1.5}))
    _add_up(found)
    waiting = next(part for part in found.parts if part.part == "waiting")
    assert (waiting.base_ms, waiting.candidate_ms, waiting.difference_ms) == (None, None, None)
    assert any("it is part of the transfer on both sides" in note for note in found.notes)


def test_collectives_of_one_job_only_are_unknown_in_the_other() -> None:
    found = compare_jobs(_ddp(4), job_of(simulate(4, pipeline_1f1b(4, 8))))
    by_operation = {one.operation: one for one in found.collectives}
    reduced, sent = by_operation["all_reduce"], by_operation["send"]
    assert (reduced.calls_per_step, reduced.exposed_ms, sent.base_transfer_ms) == (None, None, None)
    assert reduced.difference_ms == -(reduced.base_exposed_ms or 0.0)
    assert found.collectives == sorted(found.collectives, key=lambda one: -abs(one.difference_ms))


def test_of_a_job_without_steps_nothing_is_compared() -> None:
    nothing = replace(_ddp(2), account=[], step=None)
    with pytest.raises(ValueError, match="where the steps of empty go is not known"):
        compare_jobs(_ddp(2), nothing, ("whole", "empty"))


@pytest.mark.parametrize(
    ("base", "candidate", "cause"),
    [("ddp_even", "ddp_uneven_data", "uneven_data"), ("fsdp_even", "fsdp_slow_host", "slow_host")],
)
def test_recorded_jobs_with_a_planted_cause_against_their_even_twins(base: str, candidate: str, cause: str) -> None:
    found = compare_sources(RECORDED / base, RECORDED / candidate)
    _add_up(found)
    assert found.beyond_intervals
    assert [(one.what, one.cause, one.rank) for one in found.delays] == [("new", cause, 1)]
    assert found.work is not None
    assert (found.work.ratio, found.work.by) == (1.0, "samples")
    # Longer sequences are more work by sample.
    assert any("times the FLOPs" in note for note in found.notes) == (cause == "uneven_data")
    table = job_table(found, "rank_changes")
    assert "base_compute_ms" in table.columns
    assert [row[0] for row in table.rows] == [0, 1]
