"""One verdict on who delays the others: a rank, one that is hidden, none, or that it cannot be said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.ranks.synthetic_jobs import draw
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.chosen_steps import stalled_step
from tb_dlprof_plugin.fleet.job import Job, Verdict
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.lookup import take_rows
from tests.support.recorded_runs import ROOT

RANKS = ROOT / "tests" / "data" / "ranks"


def _facts(name: str) -> list[RankFacts]:
    return read_job([RANKS / name]).facts


def _verdict(job: Job) -> Verdict:
    assert job.verdict is not None
    assert job.sentence.startswith(job.verdict.sentence)
    return job.verdict


def _accuses_no_rank(job: Job, words: str) -> None:
    found = _verdict(job)
    assert (found.kind, found.rank, found.saving_ms) == ("unknown", None, None)
    assert words in found.sentence
    assert not [delay for delay in job.delays if delay.certain]
    assert not job.what_if
    assert job.efficiency.wasted_gpu_share is None


@pytest.mark.parametrize("name", ["ddp_slow_host", "ddp_slow_link"])
def test_with_a_rank_missing_none_is_accused(name: str) -> None:
    _accuses_no_rank(job_of(_facts(f"recorded/{name}")[:1]), "1 of 2 ranks is missing (1)")


def test_with_a_rank_that_cannot_be_read_none_is_accused() -> None:
    job = job_of(_facts("recorded/ddp_slow_host"), unreadable=["Rank 2 is damaged."])
    _accuses_no_rank(job, "A rank's recording cannot be read")
    assert "Rank 2 is damaged." in job.notes


def test_ranks_of_two_trainings_are_no_job() -> None:
    first, other = _facts("recorded/ddp_slow_host")[0], _facts("recorded/tensor_slow_host")[1]
    _accuses_no_rank(job_of([first, other]), "these are different trainings")
    _accuses_no_rank(job_of([first, replace(other, base_ns=first.base_ns)]), "are these recordings of one job?")


def test_two_runs_of_one_training_are_told_apart_by_their_time() -> None:
    first, other = _facts("recorded/ddp_slow_host")
    later = replace(other, base_ns=other.base_ns + 300 * 10**9)
    _accuses_no_rank(job_of([first, later]), "s after rank 0: these are different trainings")
    unknown = [replace(first, base_ns=0), replace(other, base_ns=0)]
    assert _verdict(job_of(unknown)).kind == "delays"


def test_a_rank_that_lacks_a_step_of_three_leaves_too_little() -> None:
    first, other = _facts("recorded/ddp_slow_host")
    calls = other.collectives
    kept = take_rows(calls, np.flatnonzero(calls.iteration < 2))
    shorter = replace(other, steps=take_rows(other.steps, np.arange(2)), collectives=kept)
    _accuses_no_rank(job_of([first, shorter]), "26 of 39 collectives were found on all of their members")


@pytest.mark.parametrize(
    "name", ["ddp_slow_gpu", "ddp_slow_host", "ddp_slow_input", "ddp_garbage", "ddp_uneven_data", "experts_uneven"]
)
def test_what_a_repair_saves_has_one_interval_everywhere(name: str) -> None:
    job = job_of(_facts(f"recorded/{name}"))
    found, first = _verdict(job), job.delays[0]
    assert (found.kind, found.rank, found.cause) == ("delays", 1, first.cause)
    assert (found.saving_ms, found.saving_low_ms, found.saving_high_ms) == (
        first.saving_ms,
        first.saving_low_ms,
        first.saving_high_ms,
    )
    assert 0 < first.saving_low_ms <= first.saving_ms <= first.saving_high_ms
    assert found.late_ms is not None
    assert first.saving_ms <= found.late_ms + 1e-6
    assert job.step is not None
    change = next(one for one in job.what_if if one.change == "rank 1 as fast as the others")
    assert change.step_ms == pytest.approx(job.step.ms - first.saving_ms)
    assert change.low_ms < change.step_ms < change.high_ms


def test_even_ranks_have_no_repair_and_waste_nothing() -> None:
    job = job_of(_facts("recorded/ddp_even"))
    found = _verdict(job)
    assert found.kind == "none"
    assert job.step is not None
    assert found.visible_ms is not None
    assert 0 < found.visible_ms < 0.1 * job.step.ms
    assert not [one for one in job.what_if if one.change.startswith("rank ")]
    assert job.efficiency.wasted_gpu_share is None


@pytest.mark.parametrize("name", ["recorded/pipeline_even", "settings_recorded/gpipe"])
def test_even_stages_are_not_made_more_even_by_hosts(name: str) -> None:
    job = job_of(_facts(name))
    assert job.step is not None
    even = next(one for one in job.what_if if one.change == "even pipeline stages")
    assert even.step_ms == pytest.approx(job.step.ms, rel=0.03)


def test_a_stage_without_a_twin_is_named_for_its_own_code() -> None:
    """Pauses of a sixth of the step on the host of one of two stages, which launch different layers."""
    drawn = draw(82)
    found = _verdict(job_of(drawn.facts))
    assert drawn.plant == "slow_host"
    assert (found.kind, found.rank, found.cause) == ("delays", drawn.rank, "slow_host")
    # What an earlier version stored does not say what a stage's code takes.
    unknown = [replace(one, steps=replace(one.steps, outside_ns=np.zeros(0, dtype=np.int64))) for one in drawn.facts]
    assert _verdict(job_of(unknown)).kind == "none"


def test_one_stalled_step_is_left_out() -> None:
    facts = [_longer(one, 2, 90_000_000) for one in _facts("recorded/ddp_even")]
    numbers = facts[0].steps.number
    stall = stalled_step(facts, numbers)
    assert stall is not None
    assert stall.number == numbers[2]
    job, even = job_of(facts), job_of(_facts("recorded/ddp_even"))
    assert "it is left out" in "".join(job.notes)
    assert _verdict(job).kind == "none"
    assert job.step is not None
    assert even.step is not None
    assert job.step.ms == pytest.approx(even.step.ms, rel=0.05)
    assert stalled_step([_longer(one, 0, 90_000_000) for one in facts], numbers) is None


def test_a_stall_that_garbage_collection_explains_stays() -> None:
    facts = _facts("recorded/ddp_garbage")
    assert stalled_step(facts, facts[0].steps.number) is None


def _longer(one: RankFacts, index: int, by_ns: int) -> RankFacts:
    """The rank with a step that is longer at its end, and idle for so long."""
    steps = one.steps
    later = np.arange(len(steps)) > index
    changed = replace(
        steps,
        start_ns=steps.start_ns + by_ns * later,
        end_ns=steps.end_ns + by_ns * (np.arange(len(steps)) >= index),
        idle_ns=steps.idle_ns + by_ns * (np.arange(len(steps)) == index),
    )
    moved = by_ns * later[one.collectives.iteration]
    calls = one.collectives
    return replace(
        one,
        steps=changed,
        collectives=replace(calls, start_ns=calls.start_ns + moved, launched_ns=calls.launched_ns + moved),
    )
