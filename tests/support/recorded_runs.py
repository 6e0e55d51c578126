"""Recorded runs, each read once by a worker, and small literal ones for the tests of the forecast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.pages.compare import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

ROOT = Path(__file__).resolve().parents[2]
DEMO, PAIRS = ROOT / "demo" / "recorded", ROOT / "tests" / "data" / "precision_pairs"
WEIGHTS = ([16, 3, 3, 3], [64, 10])
"""The parameters that `trained` has: of the convolution and of the linear layer."""
ACCUMULATE = "torch::autograd::AccumulateGrad"


@functools.cache
def recorded_view(directory: Path) -> ProfileView:
    """The one profile of a run. All tests of a worker share it and what it remembers: they must not change it."""
    (stored,) = read_profiles(directory)
    _READ[directory] = view = ProfileView(stored.profile)
    return view


_READ: dict[Path, ProfileView] = {}


def demo_run(name: str) -> CompareInput:
    """A run of the demo by its name, such as "lenet/fp32": view, reference and all its iterations."""
    view = recorded_view(DEMO / name)
    return CompareInput(view, RunRef(name, "", 0, 0), view.selection())


def changed_views() -> list[Path]:
    """Runs whose shared view some test has changed in what a test may want to be otherwise."""
    found = []
    for directory, view in _READ.items():
        (stored,) = read_profiles(directory)
        now, then = view.profile, stored.profile
        if (now.facts, now.system, now.source) != (then.facts, then.system, then.source):
            found.append(directory)
    return found


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], ProfileView]:
    """Reads a run of the demo by its name, such as "lenet/fp32", or one of the recorded pairs."""

    return lambda name: recorded_view(DEMO / name if (DEMO / name).is_dir() else PAIRS / name)


@pytest.fixture(scope="session")
def trained(training: Callable[..., Any]) -> Callable[..., ProfileView]:
    """Makes a `training` with all that a trace tells of gradients: shapes of the parameters and of the convolution's
    output. ``gpu`` renames the GPU."""

    def make(steps: int = 3, gpu: str = "NVIDIA H200", **options: Any) -> ProfileView:
        trace = training("fp32", steps=steps)
        trace.rest["deviceProperties"][0]["name"] = gpu
        for step in range(steps):
            at = 1000 * step
            trace.op("ConvolutionBackward0", at + 352, 46, tid=2, dims=[[8, 16, 30, 30]], types=["float"])
            for place, dims in enumerate(WEIGHTS):
                trace.op(f"autograd::engine::evaluate_function: {ACCUMULATE}", at + 404 + 5 * place, 4, tid=2)
                trace.op(ACCUMULATE, at + 405 + 5 * place, 2, tid=2, dims=[dims], types=["float"])
        view: ProfileView = trace.view(**options)
        return view

    return make
