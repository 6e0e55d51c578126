"""What-if with hosts, on jobs of two ranks whose steps follow from their paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.simulated_job import Work, ddp, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.rank_facts import NO_PATH, PATH_COLUMNS, Operation, RankFacts, StepLength

MS = 1_000_000
STEPS = 5
NewRank = Callable[..., RankFacts]


def rank_of(
    new_rank: NewRank,
    rank: int,
    step: float,
    *,
    duration: float,
    gpu: float,
    pause: float = 0.0,
    exposed: float | None = None,
    contended: float = 0.0,
    unprofiled: float = 0.0,
    operation: Operation = Operation.ALL_REDUCE,
) -> RankFacts:
    """A rank with one call at the end of each step of ``step`` ms, after ``gpu`` ms of work.

    Its host launches for 4 ms a step while it is recorded and 3 ms otherwise, after a pause.
    """
    ends = [step * (k + 1) for k in range(STEPS)]
    calls = [
        {"start": (end - duration) * MS, "end": end * MS, "step": k, "sequence": k, "operation": operation}
        for k, end in enumerate(ends)
    ]
    facts = new_rank(rank, calls, steps=range(STEPS))
    exposed = duration if exposed is None else exposed

    def column(ms: float) -> Any:
        return np.full(STEPS, round(ms * MS))

    idle = max(step - gpu - exposed, 0.0)
    paths = {
        "gpu_ns": gpu, "gpu_after_host_ns": pause + gpu, "host_ns": pause + 4,
        "unprofiled_gpu_ns": gpu, "unprofiled_gpu_after_host_ns": pause + gpu, "unprofiled_host_ns": pause + 3,
        "behind_ns": 0, "contended_ns": contended,
    }  # fmt: skip
    nothing = np.full(STEPS, NO_PATH)
    table = replace(
        facts.collectives,
        exposed_ns=column(exposed),
        work_ns=column(gpu),
        idle_ns=column(idle),
        launched_ns=facts.collectives.start_ns - round(max(gpu - 4, 0.01) * MS),
        host_after_gpu_ns=nothing,
        unprofiled_host_after_gpu_ns=nothing,
        **{name: column(ms) for name, ms in paths.items()},
    )
    starts = np.array([round((end - step) * MS) for end in ends])
    steps = replace(
        facts.steps,
        start_ns=starts,
        end_ns=starts + round(step * MS),
        compute_ns=column(gpu),
        communication_ns=column(exposed),
        idle_ns=column(idle),
    )
    length = StepLength(unprofiled, unprofiled, unprofiled, "measured")
    return replace(facts, steps=steps, collectives=table, step_length=length, launch_share=0.75)


def found(job: Job) -> tuple[int, str, bool]:
    first = job.delays[0]
    return first.rank, first.cause, first.certain


def left_ms(job: Job) -> float:
    assert job.step is not None
    return job.step.ms - job.delays[0].saving_ms


def test_a_host_with_pauses_is_repaired_to_the_pace_of_gpus(new_rank: NewRank) -> None:
    early = rank_of(new_rank, 0, 20, duration=10, gpu=10, unprofiled=19)
    late = rank_of(new_rank, 1, 20, duration=1, gpu=10, pause=16, unprofiled=19)
    job = job_of([early, late])
    assert found(job) == (1, "slow_host", True)
    # 10 ms of work and 1 ms of transfer remain; the host that is as fast as the other one is hidden.
    assert left_ms(job) == pytest.approx(11, rel=0.01)
    assert job.simulated_error_percent == pytest.approx(0, abs=1)


def test_hosts_that_launch_at_other_speeds_while_they_are_recorded_delay_nobody(new_rank: NewRank) -> None:
    early = rank_of(new_rank, 0, 20, duration=16, gpu=3, unprofiled=15)
    late = rank_of(new_rank, 1, 20, duration=1, gpu=3, unprofiled=15)
    slower = {"host_ns": 20, "gpu_after_host_ns": 19, "unprofiled_host_ns": 15, "unprofiled_gpu_after_host_ns": 14.5}
    faster = {"host_ns": 14, "gpu_after_host_ns": 13, "unprofiled_host_ns": 10.5, "unprofiled_gpu_after_host_ns": 10}
    ranks = [
        replace(one, collectives=replace(one.collectives, **{n: np.full(STEPS, int(ms * MS)) for n, ms in own.items()}))
        for one, own in ((early, faster), (late, slower))
    ]
    job = job_of(ranks)
    assert (job.delays[0].rank, job.delays[0].cause) == (1, "unknown")
    assert not job.delays[0].certain
    assert job.delays[0].saving_ms < 0.06 * 15


def test_work_that_waiting_slows_down_is_faster_once_nobody_waits(new_rank: NewRank) -> None:
    # 3 of the 12 ms in the call are hidden by work, which takes 2 ms longer for it.
    early = rank_of(new_rank, 0, 21, duration=15, gpu=10, exposed=11, contended=2, unprofiled=21)
    late = rank_of(new_rank, 1, 21, duration=1, gpu=20, unprofiled=21)
    job = job_of([early, late])
    assert job.delays[0].rank == 1
    assert left_ms(job) == pytest.approx(8 + 1, rel=0.12)
    alone = replace(early, collectives=replace(early.collectives, contended_ns=np.zeros(STEPS, dtype=np.int64)))
    assert left_ms(job_of([alone, late])) == pytest.approx(10 + 1, rel=0.12)


def test_members_of_a_broadcast_wait_for_its_root(new_rank: NewRank) -> None:
    root = rank_of(new_rank, 0, 20, duration=1, gpu=10, pause=16, unprofiled=19, operation=Operation.BROADCAST)
    other = rank_of(new_rank, 1, 20, duration=10, gpu=10, unprofiled=19, operation=Operation.BROADCAST)
    job = job_of([root, other])
    assert found(job) == (0, "slow_host", True)
    assert left_ms(job) == pytest.approx(11, rel=0.01)
    assert job.account[1].waiting_ms == pytest.approx(9, rel=0.15)


def test_of_steps_without_paths_the_others_are_replayed(new_rank: NewRank) -> None:
    ranks = [
        rank_of(new_rank, 0, 20, duration=10, gpu=10, unprofiled=19),
        rank_of(new_rank, 1, 20, duration=1, gpu=10, pause=16, unprofiled=19),
    ]
    whole = job_of(ranks)
    for index, one in enumerate(ranks):
        names = ("host_ns", "gpu_ns", "gpu_after_host_ns", "behind_ns", "contended_ns")
        columns = {name: getattr(one.collectives, name).copy() for name in names}
        for column in columns.values():
            column[:3] = NO_PATH
        ranks[index] = replace(one, collectives=replace(one.collectives, **columns))
    assert left_ms(job_of(ranks)) == pytest.approx(left_ms(whole), rel=1e-6)
    assert len(job_of(ranks).collective_rows) == len(whole.collective_rows)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "names",
    [("gpu_ns", "gpu_after_host_ns"), ("host_ns",), ("unprofiled_gpu_ns",), ("unprofiled_host_ns",)],
)
def test_half_recorded_paths_are_none(new_rank: NewRank, names: tuple[str, ...]) -> None:
    """As a damaged recording states them: the GPU has a path wherever the host has one."""
    ranks = [rank_of(new_rank, rank, 20, duration=10 - 9 * rank, gpu=10, unprofiled=19) for rank in (0, 1)]
    damaged, without = (
        [replace(one, collectives=replace(one.collectives, **columns)) for one in ranks]
        for columns in ({name: np.full(STEPS, NO_PATH) for name in chosen} for chosen in (names, PATH_COLUMNS))
    )
    assert job_of(damaged).what_if == job_of(without).what_if != []


def test_ranks_that_meet_in_some_steps_only_are_replayed() -> None:
    """As with local SGD; the first step has no call."""
    slow, even = (
        job_of(simulate(4, lambda rank, step, own=own: own(rank, step) if step % 2 else [Work(20 * MS)]))
        for own in (ddp(4, slower={2: 1.2}), ddp(4))
    )
    assert slow.simulated_error_percent == pytest.approx(0, abs=0.1)
    assert even.step is not None
    assert left_ms(slow) == pytest.approx(even.step.ms, rel=0.01)
