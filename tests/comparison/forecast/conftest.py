"""Recorded runs and small literal ones for the tests of the forecast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.measures import Frame
from tb_dlprof_plugin.storage.eventfile import read_profiles

ROOT = Path(__file__).resolve().parents[3]
DEMO, PAIRS = ROOT / "demo" / "recorded", ROOT / "benchmarks" / "precision_pairs" / "recorded"
WEIGHTS = ([16, 3, 3, 3], [64, 10])
"""The parameters that `trained` has: of the convolution and of the linear layer."""


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Frame]:
    """Reads a run of the demo by its name, such as "lenet/fp32", or one of the recorded pairs."""

    @functools.cache
    def read(name: str) -> Frame:
        directory = DEMO / name if (DEMO / name).is_dir() else PAIRS / name
        (stored,) = read_profiles(directory)
        return Frame(stored.profile)

    return read


@pytest.fixture(scope="session")
def trained(training: Callable[..., Any]) -> Callable[..., Frame]:
    """Makes a `training` of which the shapes of the parameters are known; ``gpu`` renames the GPU."""

    def make(steps: int = 3, gpu: str = "NVIDIA H200", **options: Any) -> Frame:
        trace = training("fp32", steps=steps)
        trace.rest["deviceProperties"][0]["name"] = gpu
        for step in range(steps):
            for place, dims in enumerate(WEIGHTS):
                name, at = "torch::autograd::AccumulateGrad", 1000 * step + 404 + 4 * place
                trace.op(name, at, 3, tid=2, dims=[dims], types=["float"])
        frame: Frame = trace.frame(**options)
        return frame

    return make
