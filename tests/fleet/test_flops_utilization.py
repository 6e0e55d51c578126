"""FLOPs utilization of a job, and what uneven ranks waste in hours, on recorded jobs of two H200s."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tb_dlprof_plugin import distributed
from tb_dlprof_plugin.fleet.answers.account import flops_utilization
from tb_dlprof_plugin.fleet.job import JobStep
from tb_dlprof_plugin.fleet.job_files import read_job

JOBS = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded"


@pytest.mark.parametrize("job", ["ddp_even", "ddp_slow_gpu"])
def test_flops_utilization_is_that_of_matrix_products_over_the_step(job: str) -> None:
    found = distributed(JOBS / job)
    efficiency = found.efficiency
    assert found.step is not None
    assert efficiency.flops_utilization is not None
    # A transformer of 8 layers of width 1024 on 16 x 1024 tokens: 6 FLOPs for each of its 12 x 1024^2 parameters of a
    # layer and each token; attention's products are more.
    flops = 6 * 8 * 12 * 1024**2 * 16 * 1024
    least = flops / (989.4e12 * found.step.ms / 1e3)
    assert least * 0.98 < efficiency.flops_utilization < 1.4 * least
    if efficiency.wasted_gpu_share is not None:
        assert efficiency.wasted_gpu_hours_per_day == pytest.approx(48 * efficiency.wasted_gpu_share)


def test_flops_utilization_of_an_unknown_gpu_is_unknown() -> None:
    step = JobStep(10.0, 9.0, 11.0, "measured")
    assert flops_utilization([], step) is None
    facts = read_job([JOBS / "ddp_even"]).facts
    assert flops_utilization(facts, None) is None
    assert flops_utilization([dataclasses.replace(one, gpu="other") for one in facts], step) is None


def test_flops_that_a_step_cannot_hold_have_no_utilization() -> None:
    facts = read_job([JOBS / "ddp_even"]).facts
    assert flops_utilization(facts, JobStep(1e-3, 1e-3, 1e-3, "measured")) is None
