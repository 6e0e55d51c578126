"""Jobs of two H200s with a planted cause, as the hook stored them (`benchmarks/ranks/recorded`)."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from benchmarks.ranks.compare import Row, row_of
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.job_files import read_job
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "benchmarks" / "ranks" / "recorded"


@functools.cache
def _job(name: str) -> Job:
    return job_of(read_job([RECORDED / name]).facts)


@functools.cache
def _row(name: str) -> Row:
    return row_of(RECORDED / name, _job(name))


@pytest.mark.parametrize(
    "name",
    ["ddp_slow_gpu", "ddp_slow_input", "ddp_garbage", "ddp_uneven_data", "fsdp_slow_host", "pipeline_uneven"],
)
def test_the_planted_rank_and_cause_are_named(name: str) -> None:
    row = _row(name)
    assert (row.named_rank, row.named_cause, row.significant) == (row.rank, row.cause, True)
    assert row.right


@pytest.mark.parametrize("name", ["ddp_even", "fsdp_even", "pipeline_even"])
def test_hosts_that_only_the_profiler_makes_uneven_are_not_named(name: str) -> None:
    assert _row(name).right
    assert [delay for delay in _job(name).delays if delay.significant] == []


@pytest.mark.parametrize("name", ["pipeline_even", "pipeline_uneven"])
def test_a_receive_that_waits_for_its_partner_is_bubble(name: str) -> None:
    for row in _job(name).account:
        assert row.transfer_ms < 0.01 * row.step_ms < row.bubble_ms
    assert any("Pipeline bubble" in note and "microbatches on even stages" in note for note in _job(name).notes)


def test_the_comparison_tells_right_from_wrong() -> None:
    right = _row("ddp_slow_input")
    assert right.error_percent == pytest.approx(100 * (right.repaired_ms / right.twin_ms - 1))  # type: ignore[operator]
    assert not replace(right, named_rank=0).right
    assert not replace(right, named_cause="slow_host").right
    assert not replace(right, significant=False).right
    assert not replace(_row("ddp_even"), significant=True).right
