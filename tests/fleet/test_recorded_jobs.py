"""Jobs of two GPUs with a planted cause, as the hook stored them and as torch.profiler alone records (`lab/ranks`)."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest

from lab.ranks.compare import Row, row_of
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.job_files import read_job
from tests.support.recorded_runs import ROOT

RANKS = ROOT / "tests" / "data" / "ranks"
FOLDERS = sorted(
    {file.parent for kind in ("recorded", "held_out", "trial") for file in (RANKS / kind).glob("*/truth.0.json")}
)
EVEN = [folder for folder in FOLDERS if folder.name.endswith("_even")]
PLANTED = [folder for folder in FOLDERS if folder not in EVEN]
BARE = ("tensor_2", "tensor_2_sleep_10")
BY_HOSTS = ("fsdp_slow_host", "tensor_slow_host")
"""Their hosts set the pace of the even twin too, which was up to 20 % slower in one of its turns than in the other."""


@functools.cache
def _job(folder: Path) -> Job:
    return job_of(read_job([folder]).facts)


@functools.cache
def _row(folder: Path) -> Row:
    return row_of(folder, _job(folder))


@pytest.mark.parametrize("folder", PLANTED, ids=lambda folder: folder.name)
def test_the_planted_rank_and_cause_are_named(folder: Path) -> None:
    row = _row(folder)
    assert row.rank is None or row.named_rank == row.rank
    assert (row.named_cause, row.certain) == (row.cause, True)
    assert row.right


@pytest.mark.parametrize("folder", PLANTED, ids=lambda folder: folder.name)
def test_the_repaired_step_is_the_even_twins(folder: Path) -> None:
    row = _row(folder)
    assert row.error_percent is not None
    assert abs(row.error_percent) < (12 if folder.name in BY_HOSTS else 10)
    change = next((one for one in _job(folder).what_if if one.step_ms == pytest.approx(row.repaired_ms)), None)
    assert change is not None
    assert row.twin_ms is not None
    assert change.low_ms <= row.twin_ms <= change.high_ms


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_replayed_as_recorded_is_what_was_recorded(folder: Path) -> None:
    error = _job(folder).simulated_error_percent
    assert error is not None
    assert abs(error) < 3


@pytest.mark.parametrize("folder", EVEN, ids=lambda folder: folder.name)
def test_hosts_that_only_the_profiler_makes_uneven_are_not_named(folder: Path) -> None:
    assert _row(folder).right
    assert [delay for delay in _job(folder).delays if delay.certain] == []


@pytest.mark.parametrize("name", ["pipeline_even", "pipeline_uneven"])
def test_a_receive_that_waits_for_its_partner_is_bubble(name: str) -> None:
    job = _job(RANKS / "recorded" / name)
    for row in job.account:
        assert row.transfer_ms < 0.01 * row.step_ms < row.bubble_ms
    assert any("Pipeline bubble" in note and "microbatches on even stages" in note for note in job.notes)


@pytest.mark.parametrize("name", BARE)
def test_traces_of_torch_profiler_alone_show_the_same(name: str) -> None:
    job, row = _job(RANKS / "bare" / name), _row(RANKS / "bare" / name)
    assert job.step is not None
    assert job.step.source == "simulated"
    assert job.step.low_ms < row.measured_ms < job.step.high_ms
    assert row.right
    if row.twin_ms is not None:
        first = job.delays[0]
        assert first.saving_low_ms < row.measured_ms - row.twin_ms < first.saving_high_ms


def test_the_comparison_tells_right_from_wrong() -> None:
    right = _row(RANKS / "recorded" / "ddp_slow_input")
    assert right.error_percent == pytest.approx(100 * (right.repaired_ms / right.twin_ms - 1))  # type: ignore[operator]
    assert not replace(right, named_rank=0).right
    assert not replace(right, named_cause="slow_host").right
    assert not replace(right, certain=False).right
    assert not replace(_row(RANKS / "recorded" / "ddp_even"), certain=True).right


def test_stages_that_exchange_nothing_have_no_bubble() -> None:
    recorded = read_job([RANKS / "recorded" / "ddp_slow_gpu"]).facts
    job = job_of([replace(one, mesh=(("pp", one.rank),)) for one in recorded])
    assert [row.bubble_ms for row in job.account] == [0, 0]
    assert job.pipeline is None
    assert (job.delays[0].rank, job.delays[0].certain) == (1, True)
