"""The recorded step's buckets, and those of the step without the profiler."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.metrics.step_account import whole_numbers, without_recorder
from tb_dlprof_plugin.metrics.step_buckets import CPU_BUCKETS, GPU_BUCKETS, Basis


def buckets(basis: Basis, **times: float) -> dict[str, float]:
    return {key: times.get(key, 0.0) for key in (GPU_BUCKETS if basis == "gpu" else CPU_BUCKETS)}


def without(basis: Basis, step_ns: float, **times: float) -> dict[str, float]:
    recorded = buckets(basis, **times)
    found = without_recorder(np.array(list(recorded.values())), step_ns, basis)
    assert found.sum() == pytest.approx(step_ns)
    return {key: value for key, value in zip(recorded, found.tolist(), strict=True) if value}


def test_the_gpus_work_stays_and_the_cpus_time_shrinks_in_proportion() -> None:
    found = without("gpu", 60, tensor_core=10, other_compute=20, cpu_launch=40, python=20, idle=5, dataloader=5)
    # 40 of 100 were the recorder's: of the 60 that the CPU took, a third is left.
    assert found == pytest.approx(
        {"tensor_core": 10, "other_compute": 20, "cpu_launch": 40 / 3, "python": 20 / 3, "idle": 5, "dataloader": 5}
    )


def test_the_dataloader_is_the_last_to_shrink() -> None:
    assert without("gpu", 25, other_compute=20, cpu_launch=10, idle=4, dataloader=6) == {
        "other_compute": 20,
        "dataloader": 5,
    }
    assert without("cpu", 4, forward=5, backward=10, dataloader=5) == pytest.approx({"dataloader": 4})


def test_a_step_shorter_than_the_gpus_work_scales_it() -> None:
    assert without("gpu", 15, tensor_core=5, other_compute=15, python=5) == pytest.approx(
        {"tensor_core": 3.75, "other_compute": 11.25}
    )


def test_a_step_longer_than_recorded_adds_to_no_known_bucket() -> None:
    assert without("gpu", 30, other_compute=20, cpu_launch=5) == {"other_compute": 20, "cpu_launch": 5, "idle": 5}
    assert without("cpu", 30, forward=20) == {"forward": 20, "other": 10}


@pytest.mark.parametrize(
    ("values", "total", "expected"),
    [
        ((1.5, 2.25, 0.25), 4, [2, 2, 0]),
        ((1.2, 2.2, 0.6), 4, [1, 2, 1]),
        ((0.4, 0.4, 0.2), 3, [1, 1, 1]),
        ((2.0, 3.0), 4, [1, 3]),
    ],
)
def test_whole_numbers_sum_to_the_total(values: tuple[float, ...], total: int, expected: list[int]) -> None:
    assert whole_numbers(np.array(values), total).tolist() == expected


def test_a_timed_step_takes_the_recorders_part_out_of_the_waterfall(training) -> None:
    # GIVEN one recording of steps that took 1000 µs, and 1000 or 900 without the profiler
    recorded, timed = training("fp32").view(), training("fp32").view()
    recorded.profile.facts.unprofiled_step_ns, timed.profile.facts.unprofiled_step_ns = 1_000_000, 900_000
    found = compare(recorded, timed)
    assert found.step_ns == (1_000_000, 900_000)
    assert found.speedup == pytest.approx(10 / 9)
    # The same kernels in both; only the CPU's time differs.
    changed = {bucket.key: bucket.difference_ns for bucket in found.buckets}
    assert sum(changed.values()) == -100_000
    # The rest is rounded, so that the buckets sum to the steps.
    assert {key for key, change in changed.items() if abs(change) > 1} <= {"cpu_launch", "python"}
    in_ops = sum(after - before for pair in found.pairs for before, after in pair.buckets.values())
    assert -100_000 <= in_ops <= 0
