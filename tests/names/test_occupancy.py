"""Occupancy against what Kineto wrote into recorded traces, and against known cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tb_dlprof_plugin
from tb_dlprof_plugin.names.occupancy import Occupancy, occupancy

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
_MULTIPROCESSORS, _THREADS = 132, 2048


@pytest.mark.parametrize("run", ["resnet50/amp-fp16", "alexnet/fp32", "custom/amp-bf16", "mlp/tf32"])
def test_occupancy_is_that_which_kineto_estimates(run: str) -> None:
    """Kineto's estimate is bounded by the blocks that there are for each multiprocessor, as ours is then."""
    (stored,) = tb_dlprof_plugin.read_profiles(RECORDED / run)
    configs = stored.profile.launch_configs
    compared = 0
    for at in np.flatnonzero(configs.occupancy_percent > 0).tolist():
        threads, blocks = int(configs.block[at].prod()), int(configs.grid[at].prod())
        if threads % 32:
            continue  # Kineto counts threads there, the hardware whole warps
        found = occupancy((9, 0), threads, int(configs.registers_per_thread[at]), int(configs.shared_memory_bytes[at]))
        assert found is not None
        of_grid = 100 * blocks * threads / _MULTIPROCESSORS / _THREADS
        assert min(found.percent, of_grid) == pytest.approx(int(configs.occupancy_percent[at]), abs=1.01)
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (((9, 0), 1024, 32, 0), Occupancy(2, 100.0, "threads")),
        (((9, 0), 1024, 64, 0), Occupancy(1, 50.0, "registers")),
        (((9, 0), 256, 32, 100_000), Occupancy(2, 25.0, "shared memory")),
        (((9, 0), 32, 16, 0), Occupancy(32, 50.0, "blocks")),
        (((7, 5), 1024, 32, 0), Occupancy(1, 100.0, "threads")),
    ],
)
def test_the_scarcest_resource_limits(arguments, expected: Occupancy) -> None:
    assert occupancy(*arguments) == expected


def test_unknown_gpus_and_impossible_launches_have_none() -> None:
    assert occupancy(None, 256) is None
    assert occupancy((5, 0), 256) is None
    assert occupancy((9, 0), 0) is None
    assert occupancy((9, 0), 1024, 128) is None
