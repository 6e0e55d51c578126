"""Jobs of processes without a GPU, such as gloo's: the late rank and why, and no word of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.simulated_job import MS, Action, Idle, Launch, Wait, Work, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation

RANKS, LATE = 4, 2


def job(planted: Sequence[Action], equal_ops: bool = True) -> Job:
    """A rank does ``planted`` in each step besides what all do. ``equal_ops``: by the same ops."""

    def program(rank: int, step: int) -> list[Action]:
        call = Launch(f"c{step}", tuple(range(RANKS)), Operation.ALL_REDUCE, 1_000_000, 2 * MS)
        return [Idle(1 * MS), Work(10 * MS), *(planted if rank == LATE else ()), call, Wait(call.call), Work(MS)]

    facts = []
    for one in simulate(RANKS, program):
        ops = np.full(len(one.steps.number), 7 if equal_ops or one.rank != LATE else 8)
        facts.append(replace(one, device=UNKNOWN, backend="gloo", steps=replace(one.steps, work_hash=ops)))
    return job_of(facts)


@pytest.mark.parametrize(
    ("planted", "cause", "words"),
    [
        ([Idle(20 * MS)], "slow_host", "Its process runs no tensor op for "),
        ([Idle(20 * MS), Work(2 * MS)], "slow_host", "Its process runs no tensor op for "),
        ([Idle(20 * MS, "input")], "slow_input", "for its data loader: "),
        ([Idle(20 * MS, "garbage")], "garbage_collection", "Python's garbage collector runs "),
        ([Work(8 * MS)], "slow_host", "Its CPU is slower, or busy with something else: "),
    ],
)
def test_the_late_process_and_its_cause_are_named(planted: Sequence[Action], cause: str, words: str) -> None:
    found = job(planted)
    first = found.delays[0]
    assert (first.rank, first.cause, first.certain) == (LATE, cause, True)
    assert words in first.why
    late_ms = sum(one.ns for one in planted if isinstance(one, (Idle, Work))) / MS
    assert first.saving_ms == pytest.approx(late_ms, rel=0.1)


def test_more_ops_are_more_work() -> None:
    first = job([Work(8 * MS, key=2)], equal_ops=False).delays[0]
    assert (first.rank, first.cause, first.certain) == (LATE, "uneven_data", True)


def test_even_processes_are_not_named() -> None:
    found = job([])
    assert not [one for one in found.delays if one.certain]
    assert " 4 processes compute " in found.sentence


def test_nothing_is_said_about_gpus() -> None:
    for planted in ([], [Idle(20 * MS)], [Work(8 * MS)]):
        found = job(planted)
        assert "GPU" not in found.sentence + "".join(one.why for one in found.delays)
    assert "outside of tensor ops" in job([Idle(20 * MS)]).sentence
