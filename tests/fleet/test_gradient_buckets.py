"""DDP's gradients in other buckets: which they are, and the step with them, on two H200s next to the measured one."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.ranks.compare import measured_ms, truths
from tb_dlprof_plugin.fleet.answers.bucketed_calls import Atoms, atoms_of, bucketed
from tb_dlprof_plugin.fleet.answers.gradient_buckets import bucket_row
from tb_dlprof_plugin.fleet.answers.job_of import ReplayedJob, replayed_job
from tb_dlprof_plugin.fleet.answers.replay import Course, Times, replay, waves
from tb_dlprof_plugin.fleet.facts_codec import decode_facts, encode_facts
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.rank_facts import Gradients, RankFacts
from tests.support.recorded_runs import ROOT

RANKS = ROOT / "tests" / "data" / "ranks"
SETTINGS = RANKS / "settings_recorded"
MIB = 1 << 20


@functools.cache
def facts_of(folder: Path) -> tuple[RankFacts, ...]:
    return tuple(read_job([folder]).facts)


@functools.cache
def replayed(folder: Path) -> ReplayedJob:
    return replayed_job(facts_of(folder))


def atoms_in(folder: Path) -> Atoms:
    scenarios = replayed(folder).scenarios
    found = atoms_of(scenarios.facts, scenarios.replayed, scenarios.faster)
    assert isinstance(found, Atoms)
    return found


@pytest.mark.parametrize(
    ("recorded", "other", "cap"), [("wide_one", "wide", 25 * MIB), ("wide", "wide_one", 2000 * MIB)]
)
def test_the_step_with_other_buckets_is_the_one_that_was_measured(recorded: str, other: str, cap: int) -> None:
    row = bucket_row(replayed(SETTINGS / recorded).scenarios, cap)
    measured = measured_ms(truths(SETTINGS / other))
    assert row is not None
    assert row.step_ms == pytest.approx(measured, rel=0.08)
    assert row.low_ms <= measured <= row.high_ms
    # On which side of the recorded step it lies.
    step = replayed(SETTINGS / recorded).job.step
    assert step is not None
    assert (row.step_ms < step.ms) == (recorded == "wide_one")


def test_buckets_of_one_recording_are_those_that_ddp_makes_of_another_size() -> None:
    one, many = atoms_in(SETTINGS / "wide_one"), atoms_in(SETTINGS / "wide")
    assert [len(sizes) for sizes in one.buckets] == [1] * len(one.buckets)
    made = bucketed(one, 25 * MIB)
    first = made.exchange[: len(made.exchange) // 2] == 0
    sizes = made.bytes[: len(first)][first]
    # But for gradients that are exchanged with those before them, of which the recording has parts.
    assert sizes.sum() == sum(many.buckets[0])
    assert np.allclose(sizes[:24], many.buckets[0][:24], atol=MIB)


def test_job_and_page_list_buckets_of_other_sizes() -> None:
    changes = [one.change for one in replayed(RANKS / "recorded" / "ddp_even").job.what_if]
    assert "all gradients in one bucket instead of 13" in changes
    assert "gradients in 7 buckets instead of 13 (bucket_cap_mb=50)" in changes


def test_recorded_buckets_are_those_of_a_job_that_is_replayed_as_it_is() -> None:
    """Composed again from their gradients, the calls take the recorded paths."""
    folder = RANKS / "trial" / "vision_even"
    atoms = atoms_in(folder)
    same = bucketed(atoms, None)
    scenarios = replayed(folder).scenarios
    recorded = scenarios.replayed.paths.between(scenarios.faster).with_less_work(scenarios.replayed.paths.contended)
    assert len(same.calls.rank) == len(scenarios.replayed.rank)
    later = scenarios.replayed.step > 0
    for mine, its in ((same.paths.gpu, recorded.gpu), (same.paths.host, recorded.host)):
        # Parts are whole microseconds.
        assert np.allclose(mine[later], its[later], atol=20_000)
    steps = [
        replay(Course(calls, waves(calls)), Times(paths, calls.transfer.astype(np.float64))).step
        for calls, paths in ((same.calls, same.paths), (scenarios.replayed, recorded))
    ]
    assert steps[0] == pytest.approx(steps[1], rel=0.005)


def test_an_accumulation_has_an_exchange_for_each_batch_or_one() -> None:
    jobs = {"fixed": ROOT / "tests/data/planted/communication_bound/fixed"}
    jobs["fault"] = jobs["fixed"].with_name("fault")
    gradients = {name: facts_of(job)[0].gradients for name, job in jobs.items()}
    last = {name: one.exchange[one.iteration == one.iteration.max()] for name, one in gradients.items()}
    assert np.unique(last["fixed"]).tolist() == [0]
    assert np.unique(last["fault"]).tolist() == [0, 1, 2, 3]


def test_gradients_come_back_from_the_stored_facts() -> None:
    one = facts_of(SETTINGS / "wide_one")[0]
    again = decode_facts(encode_facts(one))
    for name in Gradients.__dataclass_fields__:
        assert np.array_equal(getattr(again.gradients, name), getattr(one.gradients, name)), name
    assert again.bucket_bytes == 100_000 * MIB
    assert len(encode_facts(one)) - len(encode_facts(replace(one, gradients=Gradients()))) < 2_000


def test_experts_in_between_leave_the_bytes_of_buckets() -> None:
    """Their own gradients are not exchanged, and other calls lie between the buckets."""
    atoms = atoms_in(RANKS / "recorded" / "experts_even")
    for cap in (4 * MIB, 25 * MIB, 1 << 40):
        made = bucketed(atoms, cap)
        own = made.bytes[: len(made.bytes) // 2], made.exchange[: len(made.bytes) // 2]
        assert [int(own[0][own[1] == number].sum()) for number in range(len(atoms.buckets))] == [
            sum(one) for one in atoms.buckets
        ]
        _, members = np.unique(made.calls.collective[made.exchange >= 0], return_counts=True)
        assert set(members.tolist()) == {2}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gradients": Gradients()}, "the recording does not show when each gradient was ready"),
        ({}, "the ranks exchange different gradients"),
    ],
)
def test_what_is_not_known_is_said(change: dict[str, object], sentence: str) -> None:
    first, second = facts_of(SETTINGS / "wide_one")
    if change:
        facts = [replace(one, **change) for one in (first, second)]  # type: ignore[arg-type]
    else:
        parts = second.gradients
        moved = np.where(parts.call == 0, np.roll(parts.bytes, 1), parts.bytes)
        facts = [first, replace(second, gradients=replace(parts, bytes=moved))]
    job = replayed_job(facts).job
    assert not [one for one in job.what_if if "bucket" in one.change]
    (note,) = [note for note in job.notes if note.startswith("Other bucket sizes of DDP")]
    assert sentence in note
    assert note.endswith("so what they change is unknown.")


def test_jobs_without_ddp_have_no_buckets() -> None:
    job = replayed(RANKS / "recorded" / "fsdp_even").job
    assert not [one for one in [*job.notes, *(row.change for row in job.what_if)] if "bucket" in one]


def test_slow_links_make_one_bucket_cost_more() -> None:
    lost = []
    for name in ("ddp_even", "ddp_slow_link"):
        found = replayed(RANKS / "recorded" / name)
        row = bucket_row(found.scenarios, 1 << 40)
        assert row is not None
        assert found.job.step is not None
        lost.append(row.step_ms - found.job.step.ms)
    # Of two ranks and three steps.
    transfers = replayed(RANKS / "recorded" / "ddp_slow_link").scenarios.calls.transfer.sum() / 6 / 1e6
    assert lost[0] < 2 < lost[1] < transfers
