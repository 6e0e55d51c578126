"""Scaling over jobs of several sizes: simulated ones whose work and losses are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import pytest
from support.simulated_job import MS, Idle, Program, Work, ddp, simulate

from tb_dlprof_plugin import job_table
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN
from tb_dlprof_plugin.fleet.several_jobs.scaling import FACTORS, Scaling, scaling


def _job(ranks: int, program: Program | None = None, batch: int = 32) -> Job:
    facts = simulate(ranks, program or ddp(ranks))
    return job_of([replace(one, batch_size=batch) for one in facts])


def _scaled(program: Program, share: float) -> Program:
    """The same program with this share of the work."""

    def scaled(rank: int, step: int) -> list[object]:
        return [replace(one, ns=one.ns * share) if isinstance(one, Work) else one for one in program(rank, step)]

    return scaled  # type: ignore[return-value]


def _check_product(found: Scaling) -> None:
    for row in found.jobs:
        factors = [getattr(row, name) for name in FACTORS]
        assert row.efficiency == pytest.approx(prod(factor for factor in factors if factor is not None), rel=1e-9)
        assert row.parts.step_ms == pytest.approx(row.step_ms)


def test_weak_scaling_loses_what_the_larger_job_waits() -> None:
    late = ddp(4, idle=lambda rank, step: [Idle(6 * MS)] if rank == 1 else [])
    found = scaling([("four", _job(4, late)), ("two", _job(2))])
    _check_product(found)
    first, last = found.jobs
    assert (first.name, last.name, found.kind, found.by) == ("two", "four", "weak", "samples")
    assert (first.efficiency, first.throughput) == (1.0, 1.0)
    # The step is 6 ms longer: three ranks wait for them, and the fourth idles for its host.
    assert last.efficiency == pytest.approx(first.step_ms / (first.step_ms + 6), rel=0.01)
    assert last.throughput == pytest.approx(2 * (last.efficiency or 0))
    assert last.waiting is not None
    assert last.host is not None
    assert last.waiting < last.host < 1
    assert last.compute == pytest.approx(1, abs=0.01)
    assert found.sentence.startswith("Weak scaling (each GPU has the same work, by samples): 4 GPUs do ")
    assert "lost by waiting for other ranks" in found.sentence


def test_strong_scaling_has_the_same_work_in_sum_and_shows_transfers_that_stay() -> None:
    # Half of the batch takes half of the time, except on GPUs that are not filled any more: a tenth more.
    half = _scaled(ddp(4), 0.55)
    found = scaling([("2", _job(2, batch=32)), ("4", _job(4, half, batch=16))])
    _check_product(found)
    assert found.kind == "strong"
    assert found.jobs[1].compute == pytest.approx(1 / 1.1, rel=0.02)
    assert (found.jobs[1].transfer or 1) < 1
    assert found.jobs[1].work == 1.0


def test_a_single_gpu_is_the_base_of_a_series() -> None:
    found = scaling([("1", _job(1)), ("2", _job(2)), ("4", _job(4)), ("8", _job(8))])
    _check_product(found)
    assert [row.gpus for row in found.jobs] == [1, 2, 4, 8]
    assert found.kind == "weak"
    table = job_table(found)
    assert table.columns[:2] == ("name", "gpus")
    assert "waiting_ms" in table.columns


def test_unknown_work_makes_efficiency_unknown_and_the_note_says_what_would_tell_it() -> None:
    found = scaling([("2", _job(2, batch=UNKNOWN)), ("4", _job(4))])
    assert (found.kind, found.by) == ("unknown", None)
    assert [row.efficiency for row in found.jobs] == [None, None]
    assert "efficiency is unknown" in found.sentence
    assert any("record_shapes=True" in note for note in found.notes)


@pytest.mark.parametrize(("column", "by"), [("matrix_flops", "FLOPs"), ("work_hash", "kernels")])
def test_without_samples_work_is_known_by_flops_or_by_equal_kernels(column: str, by: str) -> None:
    def job(ranks: int) -> Job:
        facts = simulate(ranks, ddp(ranks))
        known = [replace(one.steps, **{column: one.steps.number * 0 + 7_000}) for one in facts]
        return job_of([replace(one, steps=steps) for one, steps in zip(facts, known, strict=True)])

    found = scaling([("2", job(2)), ("4", job(4))])
    assert (found.kind, found.by, found.jobs[1].work) == ("weak", by, 2.0)


def test_different_trainings_are_no_series_of_one() -> None:
    def job(ranks: int, flops: int) -> Job:
        facts = simulate(ranks, ddp(ranks))
        return job_of(
            [
                replace(one, batch_size=32, steps=replace(one.steps, matrix_flops=one.steps.number * 0 + flops))
                for one in facts
            ]
        )

    assert scaling([("2", job(2, 3000)), ("recomputed", job(4, 4000))]).kind == "weak"
    found = scaling([("2", job(2, 3000)), ("other", job(4, 9000))])
    assert (found.kind, found.jobs[1].efficiency) == ("unknown", None)
    assert any("different trainings" in note for note in found.notes)


def test_ranks_of_a_tensor_parallel_group_read_the_same_samples() -> None:
    def job(mesh: Callable[[int], tuple[tuple[str, int], ...]]) -> Job:
        facts = simulate(4, ddp(4), mesh=mesh)
        return job_of([replace(one, batch_size=8) for one in facts])

    by_data, by_tensor = job(lambda rank: (("dp", rank),)), job(lambda rank: (("dp", rank // 2), ("tp", rank % 2)))
    assert by_data.work is not None
    assert by_tensor.work is not None
    assert (by_data.work.samples, by_tensor.work.samples) == (32.0, 16.0)


def test_jobs_of_one_size_are_no_series() -> None:
    with pytest.raises(ValueError, match="different numbers of GPUs"):
        scaling([("a", _job(2)), ("b", _job(2))])


def test_a_step_whose_interval_begins_at_0_bounds_the_efficiency_from_below_alone() -> None:
    larger = _job(4)
    assert larger.step is not None
    open_job = replace(larger, step=replace(larger.step, low_ms=0.0))
    (_, row) = scaling([("2", _job(2)), ("4", open_job)]).jobs
    assert row.efficiency_high is None
    assert row.efficiency_low is not None
    assert row.efficiency is not None
    assert 0 < row.efficiency_low <= row.efficiency
