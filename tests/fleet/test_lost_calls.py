"""A recorder may lose calls of a rank: steps without them are compared, and the cause stays."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.chosen_steps import common_steps, whole_steps
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.rank_facts import Collectives, RankFacts
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "tests" / "data" / "ranks" / "recorded"


def without(one: RankFacts, lost: list[int]) -> RankFacts:
    kept = np.setdiff1d(np.arange(len(one.collectives)), lost)
    columns = {column.name: getattr(one.collectives, column.name)[kept] for column in fields(Collectives)}
    return replace(one, collectives=Collectives(**columns))


@pytest.mark.parametrize("late", [0, 1])
def test_the_step_with_lost_calls_is_left_out_and_the_cause_stays(late: int) -> None:
    facts = read_job([RECORDED / "ddp_slow_gpu"]).facts
    numbers = common_steps(facts)
    facts[late] = without(facts[late], [3, 4])
    assert whole_steps(facts, numbers).tolist() == numbers[1:].tolist()
    job = job_of(facts)
    # With two steps left nothing is certain that comes by chance, too.
    assert (job.delays[0].rank, job.delays[0].cause) == (1, "slow_gpu")
    assert "In 1 of 3 recorded steps some ranks lack calls that the others have" in "".join(job.notes)


def test_ranks_that_differ_in_each_step_keep_all_steps() -> None:
    facts = read_job([RECORDED / "pipeline_even"]).facts
    numbers = common_steps(facts)
    assert whole_steps(facts, numbers).tolist() == numbers.tolist()
    assert not [note for note in job_of(facts).notes if "lack calls" in note]


def test_where_calls_of_all_steps_are_lost_all_are_compared() -> None:
    facts = read_job([RECORDED / "ddp_slow_gpu"]).facts
    numbers = common_steps(facts)
    each = len(facts[0].collectives) // len(numbers)
    facts[0] = without(facts[0], [2, 2 + each])
    assert whole_steps(facts, numbers).tolist() == numbers.tolist()
    assert job_of(facts).account[0].step_ms > 0
