"""The step on more GPUs: against simulated jobs of that size, whose transfers follow NCCL's model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.simulated_job import Action, Launch, Program, ddp, fsdp, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.answers.more_gpus import Growth
from tb_dlprof_plugin.fleet.job import WhatIf
from tb_dlprof_plugin.fleet.rank_facts import Group, Operation, RankFacts

GPU = "NVIDIA H200"


def _program(make: object, ranks: int, slower_link: float = 1.0, step_ns: float = 1900.0, base: int = 4) -> Program:
    """A job of so many ranks, whose transfers are those of ``base`` ranks, stretched as rings are."""
    inner: Program = make(ranks)  # type: ignore[operator]

    def stretched(one: Launch) -> Launch:
        passes = ((ranks - 1) / ranks) / ((base - 1) / base)
        steps = (2 if one.operation == Operation.ALL_REDUCE else 1) * (ranks - base)
        return replace(one, transfer_ns=one.transfer_ns * passes * slower_link + steps * step_ns)

    def program(rank: int, step: int) -> list[Action]:
        return [stretched(one) if isinstance(one, Launch) else one for one in inner(rank, step)]

    return program


def _facts(make: object, ranks: int = 4, host: str = "h", **changes: object) -> list[RankFacts]:
    facts = simulate(ranks, _program(make, ranks), gpu=GPU)
    return [replace(one, host=host, wrapper="DistributedDataParallel", **changes) for one in facts]  # type: ignore[arg-type]


def _row(rows: list[WhatIf], gpus: int) -> WhatIf:
    return next(one for one in rows if one.change.startswith(f"{gpus} GPUs, "))


@pytest.mark.parametrize("make", [ddp, fsdp])
def test_twice_as_many_gpus_take_what_a_job_of_that_size_takes(make: object) -> None:
    job = job_of(_facts(make))
    truth = job_of(simulate(8, _program(make, 8), gpu=GPU, seed=1))
    assert job.step is not None
    assert truth.step is not None
    row = _row(job.what_if, 8)
    assert row.low_ms <= row.step_ms <= row.high_ms
    assert row.step_ms == pytest.approx(truth.step.ms, rel=0.02)
    assert truth.step.ms > job.step.ms
    assert any(note.startswith("On more GPUs: each has the same batch") for note in job.notes)
    # 16 GPUs are on two hosts, which nothing was recorded of.
    assert not [one for one in job.what_if if one.change.startswith("16 GPUs")]


def test_across_hosts_the_network_must_be_known() -> None:
    facts = _facts(ddp)
    job = job_of(facts, growth=Growth((16,)))
    assert not [one for one in job.what_if if "GPUs" in one.change]
    assert any("no call of the recording crosses hosts" in note for note in job.notes)
    # 25 MB in 0.8 ms on four ranks are 46.9 GB/s.
    recorded = 25_000_000 * 1.5 / 800_000
    rows = [_row(job_of(facts, growth=Growth((16,), recorded / by)).what_if, 16) for by in (1.0, 4.0)]
    truth = job_of(simulate(16, _program(ddp, 16, slower_link=4.0), gpu=GPU)).step
    assert truth is not None
    assert rows[0].step_ms < rows[1].step_ms
    assert rows[1].step_ms == pytest.approx(truth.ms, rel=0.02)


def test_a_job_on_several_hosts_shows_its_network() -> None:
    facts = [replace(one, host=f"h{one.rank // 2}") for one in _facts(ddp)]
    job = job_of(facts)
    assert _row(job.what_if, 8).step_ms < _row(job.what_if, 16).step_ms


def test_many_hosts_cost_an_all_reduce_the_steps_of_a_tree_and_not_those_of_a_ring() -> None:
    """A ring of 128 in place of 64 members has 128 more steps, some 250 us a call."""
    facts = [replace(one, host=f"h{one.rank // 8}") for one in _facts(ddp, 64)]
    calls = int(facts[0].collectives.operation.size) // 3
    job = job_of(facts)
    assert job.step is not None
    longer_ms = _row(job.what_if, 128).step_ms - job.step.ms
    assert 0 < longer_ms < calls * 0.1 + 0.05 * job.step.ms


@pytest.mark.parametrize(
    ("gpus", "sentence"), [((6,), "6 GPUs are no multiple of the 4 of the job."), ((4,), "4 GPUs are no multiple")]
)
def test_numbers_that_make_no_sense_are_named(gpus: tuple[int, ...], sentence: str) -> None:
    job = job_of(_facts(ddp), growth=Growth(gpus))
    assert any(note.startswith(sentence) for note in job.notes)


def test_a_group_that_may_be_tensor_parallel_or_exchanges_other_things_is_not_extrapolated() -> None:
    everyone = (Group("0", "default_pg", (0, 1, 2, 3), "dp"),)
    unnamed = [replace(one, groups=everyone) for one in _facts(ddp)]
    assert _row(job_of(unnamed).what_if, 8)
    without = [replace(one, wrapper="") for one in unnamed]
    assert not [one for one in job_of(without).what_if if "GPUs" in one.change]
    routed = []
    for one in unnamed:
        operation = one.collectives.operation.copy()
        operation[::4] = Operation.ALL_TO_ALL
        routed.append(replace(one, collectives=replace(one.collectives, operation=operation)))
    job = job_of(routed, growth=Growth((8,)))
    assert not [one for one in job.what_if if "GPUs" in one.change]
    assert any("exchanges other things, too" in note for note in job.notes)
