"""Answers about jobs whose truth is known: simulated ones with a planted cause, and published ones."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import Any

import pytest
from support.published_jobs import RECORDED, bytedance, primus
from support.simulated_job import (
    MS,
    Action,
    Idle,
    Launch,
    Program,
    Wait,
    Work,
    ddp,
    fsdp,
    pipeline_1f1b,
    simulate,
    tensor_and_data,
    with_step_length,
)

from tb_dlprof_plugin.fleet.answers.account import recorded_account
from tb_dlprof_plugin.fleet.answers.calls import calls_of
from tb_dlprof_plugin.fleet.answers.collectives import bus_gb_s
from tb_dlprof_plugin.fleet.answers.delays import charged
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.answers.pipeline import bubble_share
from tb_dlprof_plugin.fleet.answers.replay import waves
from tb_dlprof_plugin.fleet.chosen_steps import common_steps
from tb_dlprof_plugin.fleet.facts_codec import decode_facts
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts, StepLength


def _job(ranks: int, program: Program, pipelined: bool = False, seed: int = 0) -> list[RankFacts]:
    return simulate(ranks, program, seed=seed, mesh=(lambda rank: (("pp", rank),)) if pipelined else lambda rank: ())


EVEN = {
    "ddp": (4, ddp(4)),
    "fsdp": (4, fsdp(4)),
    "tensor_and_data": (8, tensor_and_data(4, 2)),
    "pipeline": (4, pipeline_1f1b(4, 8)),
}
PLANTED = {
    "slow_gpu": ("ddp", ddp(4, slower={2: 1.2}), 2, "slow_gpu"),
    "slow_gpu_fsdp": ("fsdp", fsdp(4, slower={3: 1.15}), 3, "slow_gpu"),
    "slow_gpu_tensor": ("tensor_and_data", tensor_and_data(4, 2, slower={5: 1.2}), 5, "slow_gpu"),
    "more_kernels": ("ddp", ddp(4, extra={1: 5 * MS}), 1, "slow_gpu"),
    "slow_host": ("ddp", ddp(4, idle=lambda rank, step: [Idle(6 * MS)] if rank == 1 else []), 1, "slow_host"),
    "slow_host_tensor": (
        "tensor_and_data",
        tensor_and_data(4, 2, idle=lambda rank, step: [Idle(4 * MS)] if rank == 6 else []),
        6,
        "slow_host",
    ),
    "slow_input": (
        "ddp",
        ddp(4, idle=lambda rank, step: [Idle(6 * MS, "input")] if rank == 3 else []),
        3,
        "slow_input",
    ),
    "garbage": (
        "ddp",
        ddp(4, idle=lambda rank, step: [Idle(20 * MS, "garbage")] if rank == 3 and step % 3 == 1 else []),
        3,
        "garbage_collection",
    ),
    "lengths": (
        "ddp",
        ddp(4, lengths=lambda rank, step: 1.1 + 0.1 * (step % 3) if rank == 1 else 1.0),
        1,
        "uneven_data",
    ),
    "uneven_stage": ("pipeline", pipeline_1f1b(4, 8, work=[1, 1, 1, 1.4]), 3, "uneven_stage"),
    "slow_link": ("tensor_and_data", tensor_and_data(4, 2, slow_group=2), 4, "slow_link"),
}


def test_a_rank_without_the_compared_steps_is_shown(new_rank: Any) -> None:
    calls = [{"start": 100 * k, "end": 100 * k + 50} for k in range(4)]
    job = job_of([new_rank(rank, calls, steps=(9,) if rank == 2 else (1,), world_size=3) for rank in range(3)])
    assert job.ranks == [0, 1, 2]


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_rank_is_first_with_its_cause(name: str) -> None:
    even, program, rank, cause = PLANTED[name]
    job = job_of(_job(EVEN[even][0], program, even == "pipeline"))
    assert (job.delays[0].rank, job.delays[0].cause, job.delays[0].certain) == (rank, cause, True)
    assert f"Rank {rank} delays the others" in job.sentence


@pytest.mark.parametrize("name", [name for name in PLANTED if name not in ("garbage", "uneven_stage")])
def test_repairing_it_gives_the_even_twins_step(name: str) -> None:
    even, program, _rank, _cause = PLANTED[name]
    ranks, twin = EVEN[even]
    job, truth = job_of(_job(ranks, program)), job_of(_job(ranks, twin, seed=1))
    assert job.step is not None
    assert truth.step is not None
    repaired = job.step.ms - job.delays[0].saving_ms
    assert repaired == pytest.approx(truth.step.ms, rel=0.03)


def test_even_stages_take_the_time_of_an_even_pipeline() -> None:
    # The uneven job has 4.4 units of work on its stages, an even one with as much has 1.1 on each.
    job = job_of(_job(4, pipeline_1f1b(4, 8, work=[1, 1, 1, 1.4]), True))
    truth = job_of(_job(4, pipeline_1f1b(4, 8, work=[1.1] * 4), True))
    assert truth.step is not None
    balanced = next(one for one in job.what_if if one.change == "even pipeline stages")
    assert balanced.step_ms == pytest.approx(truth.step.ms, rel=0.02)


@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("seed", range(5))
def test_even_jobs_have_no_straggler(name: str, seed: int) -> None:
    job = job_of(_job(*EVEN[name], name == "pipeline", seed=seed))
    assert [delay for delay in job.delays if delay.certain] == []
    assert "No rank delays the others" in job.sentence


def test_a_rank_that_is_late_because_another_one_was_is_not_charged() -> None:
    # Rank 4 shares its tensor group with the slow rank 5, and is as late as that in its own data group.
    job = job_of(_job(8, tensor_and_data(4, 2, slower={5: 1.2})))
    caused = {delay.rank: delay.caused_waiting_ms for delay in job.delays}
    assert caused.get(4, 0.0) < 0.02 * caused[5]


@pytest.mark.parametrize("name", PLANTED)
def test_charges_add_up_to_the_waiting(name: str) -> None:
    even, program, *_rest = PLANTED[name]
    facts = _job(EVEN[even][0], program, even == "pipeline")
    calls = calls_of(facts, match(facts), common_steps(facts))
    charges = charged(calls, waves(calls))
    assert charges.min() >= -1e-6
    assert charges.sum() == pytest.approx(float(calls.waiting[~calls.bubble].sum()), rel=1e-9, abs=1e-3)


@pytest.mark.parametrize("name", PLANTED)
def test_the_account_adds_up(name: str) -> None:
    even, program, *_rest = PLANTED[name]
    facts = _job(EVEN[even][0], program, even == "pipeline")
    recorded = recorded_account(facts, calls_of(facts, match(facts), common_steps(facts)))
    whole = [int((one.steps.end_ns - one.steps.start_ns).sum()) for one in facts]
    parts = recorded.compute + recorded.transfer + recorded.waiting + recorded.bubble + recorded.host
    assert parts.tolist() == recorded.step.tolist() == whole
    assert min(int(getattr(recorded, part).min()) for part in ("compute", "transfer", "waiting", "bubble", "host")) >= 0
    for row in job_of(facts).account:
        parts_ms = row.compute_ms + row.transfer_ms + (row.waiting_ms or 0.0) + row.bubble_ms + row.host_ms
        assert parts_ms == pytest.approx(row.step_ms, rel=1e-12)


@pytest.mark.parametrize("name", [*EVEN, *PLANTED])
def test_replayed_as_recorded_is_what_was_recorded(name: str) -> None:
    even, program = (name, EVEN[name][1]) if name in EVEN else PLANTED[name][:2]
    job = job_of(_job(EVEN[even][0], program, even == "pipeline"))
    assert job.simulated_error_percent is not None
    assert abs(job.simulated_error_percent) < 1


def test_clocks_change_no_number() -> None:
    program = tensor_and_data(4, 2, slower={5: 1.2})
    shifts = [0, 5 * MS, -3 * MS, 700, -12_345, 2 * MS, 1, -5 * MS]
    same, shifted = job_of(simulate(8, program)), job_of(simulate(8, program, clock_ns=shifts))
    assert replace(shifted, clock=same.clock) == same


def test_without_sequence_numbers_the_answers_are_the_same() -> None:
    program = tensor_and_data(4, 2, slower={5: 1.2})
    with_numbers, without = job_of(simulate(8, program)), job_of(simulate(8, program, sequenced=False))
    assert (with_numbers.collectives.by, without.collectives.by) == ("sequence", "order")
    assert replace(without, collectives=with_numbers.collectives) == with_numbers


def test_one_rank_says_what_it_cannot_know() -> None:
    job = job_of(simulate(4, ddp(4))[:1])
    assert (job.world_size, job.missing_ranks, job.delays, job.what_if) == (4, [1, 2, 3], [], [])
    assert job.account[0].waiting_ms is None
    assert job.account[0].transfer_ms > 0
    assert job.efficiency.parallel is None
    assert "One rank alone does not show" in job.notes[0]


def test_half_of_the_ranks_accuse_nobody() -> None:
    job = job_of(simulate(4, ddp(4, slower={2: 1.2}))[1:3])
    assert (job.ranks, job.missing_ranks) == ([1, 2], [0, 3])
    assert job.verdict is not None
    assert job.verdict.kind == "unknown"
    assert "2 of 4 ranks are missing (0, 3)" in job.verdict.sentence
    assert not [one for one in job.delays if one.certain]
    assert "2 of 4 ranks are missing (0, 3)" in job.notes[0]


def test_what_the_profiler_adds_is_taken_from_the_host() -> None:
    # Recorded with 6 ms more of idle time on every rank than the step has without the profiler.
    program = ddp(4, slower={2: 1.2}, idle=lambda rank, step: [Idle(6 * MS)])
    truth = job_of(simulate(4, ddp(4, slower={2: 1.2}))).step
    assert truth is not None
    job = job_of([with_step_length(one, truth.ms) for one in simulate(4, program)])
    assert job.step is not None
    assert job.step.ms == truth.ms
    assert {round(row.step_ms, 6) for row in job.account} == {round(truth.ms, 6)}
    assert max(row.host_ms for row in job.account) < 0.1
    assert next(row for row in job.account if row.rank == 0).compute_ms == pytest.approx(25.5, rel=0.01)
    even = job_of(simulate(4, ddp(4))).step
    assert even is not None
    assert job.what_if[0].step_ms == pytest.approx(even.ms, rel=0.03)


def test_factors_of_efficiency_multiply() -> None:
    found = job_of(simulate(4, ddp(4, slower={2: 1.2}))).efficiency
    assert found.load_balance is not None
    assert found.communication is not None
    assert found.parallel is not None
    assert found.load_balance == pytest.approx((3 * 25.5 + 30.6) / 4 / 30.6, rel=0.01)
    assert found.parallel == pytest.approx(found.load_balance * found.communication)
    assert found.serialisation is not None
    assert found.transfer is not None
    assert found.communication == pytest.approx(found.serialisation * found.transfer, rel=0.01)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        (Operation.ALL_REDUCE, 1.75),
        (Operation.ALL_GATHER, 0.875),
        (Operation.REDUCE_SCATTER, 0.875),
        (Operation.ALL_TO_ALL, 0.875),
        (Operation.BROADCAST, 1.0),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operation: Operation, factor: float) -> None:
    assert bus_gb_s(operation, 8_000_000, 8, 1e6) == pytest.approx(8 * factor)


def test_bandwidth_does_not_count_waiting() -> None:
    # 25 MB in 0.8 ms by four ranks: 1.5 x 31.25 GB/s, though a rank waits 5 ms in the first bucket of each step.
    rows = job_of(simulate(4, ddp(4, slower={2: 1.2}))).collective_rows
    assert rows[0].bus_gb_s == pytest.approx(46.9, rel=0.01)
    assert rows[0].verdict == "skew-bound"
    assert job_of(simulate(4, ddp(4))).collective_rows[0].verdict == "transfer-bound"


@pytest.mark.parametrize(("transfer_ms", "slow"), [(0.2, False), (3, True)])
def test_a_job_that_does_not_use_its_link(transfer_ms: float, slow: bool) -> None:
    # 32 MB between two H200s: 160 GB/s, and 11.
    def program(rank: int, step: int) -> list[Action]:
        call = Launch("a", (0, 1), Operation.ALL_REDUCE, 32_000_000, transfer_ms * MS)
        return [Work(10 * MS), call, Wait("a"), Work(1 * MS)]

    found = [delay.cause for delay in job_of(simulate(2, program, gpu="NVIDIA H200")).delays if delay.certain]
    assert found == ["slow_link", "slow_link"] * slow


def test_streams_that_start_in_different_orders_do_not_stop_the_replay() -> None:
    def program(rank: int, step: int) -> list[Action]:
        x = Launch("x", (0, 1), Operation.ALL_REDUCE, 10_000, 0.5 * MS, "tp", 1)
        y = Launch("y", (0, 1, 2), Operation.ALL_REDUCE, 20_000, 0.5 * MS, "dp", 2)
        if rank == 2:
            return [Work(2 * MS), y, Wait("y"), Work(1 * MS)]
        first, second = (x, y) if rank else (y, x)
        return [Work(2 * MS), first, Work(0.1 * MS), second, Wait("x"), Wait("y"), Work(1 * MS)]

    job = job_of(simulate(3, program))
    assert job.simulated_error_percent is not None
    assert abs(job.simulated_error_percent) < 10


def _recorded(name: str) -> Job:
    files = sorted(RECORDED.glob(f"h200_ddp_{name}.rank*.facts.gz"))
    return job_of([decode_facts(gzip.decompress(file.read_bytes())) for file in files])


def test_the_recorded_rank_with_more_gpu_work_is_first() -> None:
    job = _recorded("slow_gpu")
    assert (job.delays[0].rank, job.delays[0].cause, job.delays[0].certain) == (1, "slow_gpu", True)
    assert job.simulated_error_percent == pytest.approx(0, abs=0.5)


def test_the_recorded_even_ranks_are_not_named() -> None:
    assert [delay for delay in _recorded("even").delays if delay.certain] == []


def test_bytedance_published_slowdown() -> None:
    """S of the published job: 1.1787, and the last stage explains it (result-ST.json, ms-ST.json)."""
    job = job_of(bytedance())
    assert job.step is not None
    assert job.simulated_error_percent is not None
    assert abs(job.simulated_error_percent) < 0.5
    even = next(one.step_ms for one in job.what_if if one.change == "all ranks with equal work")
    assert job.step.ms / even == pytest.approx(1.1787, rel=0.01)
    assert {delay.rank for delay in job.delays if delay.certain} == {6, 7}
    assert {delay.cause for delay in job.delays if delay.certain} == {"uneven_stage"}


@pytest.mark.parametrize(("name", "measured"), [("pp8", 29.8), ("pp8_vpp2", 24.3)])
def test_bubbles_of_primus_pipelines(name: str, measured: float) -> None:
    account = job_of(primus(name, iterations=(7,))).account
    bubble = 100 * sum(row.bubble_ms for row in account) / sum(row.step_ms for row in account)
    assert bubble == pytest.approx(measured, abs=1)


def _interleaved(stages: int, microbatches: int, chunks: int) -> Program:
    """GPipe's order with several chunks of the model on each rank."""

    def program(rank: int, step: int) -> list[Action]:
        last = stages * chunks - 1
        actions: list[Action] = []
        for backward in (False, True):
            for chunk in reversed(range(chunks)) if backward else range(chunks):
                own = chunk * stages + rank
                before, after = (own + 1, own - 1) if backward else (own - 1, own + 1)
                for number in range(microbatches):
                    kind = f"{'b' if backward else 'f'}{number}"
                    if 0 <= before <= last:
                        actions.append(_between(f"{kind}.{before}", before, own, stages, Operation.RECEIVE))
                        actions.append(Wait(f"{kind}.{before}"))
                    actions.append(Work(2 * MS if backward else MS, 1 + backward))
                    if 0 <= after <= last:
                        actions.append(_between(f"{kind}.{own}", own, after, stages, Operation.SEND))
        return actions

    return program


def _between(call: str, source: int, target: int, stages: int, operation: Operation) -> Launch:
    ends = source % stages, target % stages
    sends = operation == Operation.SEND
    # A stream for each microbatch, so that none waits for a stage that is at an earlier chunk.
    stream = 20 + 4 * int(call[1:].partition(".")[0]) + 2 * (source < target) + sends
    return Launch(
        call, tuple(sorted(ends)), operation, 4_000_000, 0.02 * MS, "pp", stream, ends[1] if sends else ends[0]
    )


@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(4, 8, 1), (4, 8, 2), (3, 6, 3), (2, 4, 1)])
def test_microbatches_and_chunks_follow_from_what_the_first_stage_sends(
    stages: int, microbatches: int, chunks: int
) -> None:
    shape = job_of(_job(stages, _interleaved(stages, microbatches, chunks), pipelined=True)).pipeline
    assert shape is not None
    assert (shape.stages, shape.microbatches, shape.chunks) == (stages, microbatches, chunks)
    assert shape.formula_percent == pytest.approx(100 * bubble_share(stages, microbatches, chunks))
    if chunks == 1:
        assert shape.bubble_percent == pytest.approx(shape.formula_percent, abs=1)


def test_formulas_of_bubbles() -> None:
    assert bubble_share(8, 16) == pytest.approx(0.304, abs=5e-4)
    assert bubble_share(8, 16, 2) == pytest.approx(0.179, abs=5e-4)


def test_no_ranks_and_ranks_twice_are_errors() -> None:
    with pytest.raises(ValueError, match="at least one rank"):
        job_of([])
    one = simulate(2, ddp(2))[0]
    with pytest.raises(ValueError, match="Rank 0 is there 2 times"):
        job_of([one, one])


def test_hundreds_of_ranks_take_seconds() -> None:
    facts = _multiplied(256)
    began = time.perf_counter()
    job: Job = job_of(facts)
    assert time.perf_counter() - began < 20
    assert (job.delays[0].rank, job.delays[0].certain) == (77, True)


def _multiplied(ranks: int) -> list[RankFacts]:
    """Two simulated ranks under many numbers; number 77 is the slow one."""
    everyone = tuple(range(ranks))
    even, slow = simulate(2, ddp(2, slower={1: 1.2}), steps=5)
    group = (replace(even.groups[0], members=everyone),)
    return [replace(slow if rank == 77 else even, rank=rank, world_size=ranks, groups=group) for rank in range(ranks)]


def test_a_host_whose_ranks_have_slow_input_is_named() -> None:
    def late(rank: int, step: int) -> list[Idle]:
        return [Idle(6 * MS, "input")] if rank >= 6 else []

    ranks = [replace(one, host=f"host{one.rank // 2}") for one in simulate(8, ddp(8, idle=late))]
    job = job_of(ranks)
    assert job.delays[0].host == "host3"
    assert job.notes[0].startswith("Host host3: slow input on its ranks 6, 7, to which")
    for other in (job_of(simulate(8, ddp(8, idle=late))), job_of([replace(one, host="host0") for one in ranks])):
        assert not any(note.startswith("Host") for note in other.notes)
    one_rank = [replace(one, host=f"host{one.rank // 2}") for one in simulate(8, ddp(8, slower={2: 1.3}))]
    assert not any(note.startswith("Host") for note in job_of(one_rank).notes)


def test_the_bandwidth_that_hides_a_transfer_is_what_the_work_next_to_it_leaves_time_for() -> None:
    # Four buckets of 0.8 ms: three next to 4 ms of work, the last next to nothing.
    (row,) = job_of(simulate(4, ddp(4), noise=0.0)).collective_rows
    assert row.bus_gb_s == pytest.approx(25_000_000 * 1.5 / 800_000, rel=0.01)
    assert row.hiding_gb_s == pytest.approx(row.bus_gb_s * 4 / 3, rel=0.02)
    # Tensor parallelism waits for each of its collectives: no bandwidth hides them.
    rows = job_of(simulate(4, tensor_and_data(2, 2))).collective_rows
    assert [one.hiding_gb_s for one in rows if one.dimension == "tp"] == [None]


@pytest.mark.parametrize("step_ns", [0, 1, 999])
@pytest.mark.parametrize("source", ["measured", "simulated"])
def test_a_step_of_next_to_nothing_is_as_if_not_known(source: str, step_ns: int) -> None:
    """As a rank with a damaged recording states it: the other ranks say how long the job's step is."""
    facts = _job(4, ddp(4))
    length = StepLength(step_ns / 1e6, 0.0, step_ns / 1e6, source)
    damaged = [replace(one, step_length=length) for one in facts]
    assert job_of(damaged).step == job_of([replace(one, step_length=None) for one in facts]).step
    assert job_of([damaged[0], *facts[1:]]).step == job_of([replace(facts[0], step_length=None), *facts[1:]]).step


def test_transfers_without_a_duration_are_hidden_by_no_bandwidth() -> None:
    """As a damaged recording states them."""

    def program(rank: int, step: int) -> list[Action]:
        return [Work(2 * MS), Launch("c", (0, 1), Operation.ALL_REDUCE, 25_000_000, 0), Wait("c"), Work(1 * MS)]

    (row,) = job_of(simulate(2, program)).collective_rows
    assert row.transfer_ms == 0
    assert row.hiding_gb_s is None
