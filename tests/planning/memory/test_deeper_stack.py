"""The planner on a deep stack of layers, from a recording of 8 convolutions and 8 linear layers on an H200
(`tests/data/layer_resources`)."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.planning.memory.replay import runs_under
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "tests" / "data" / "layer_resources"
LAYERS = 8
"""Convolutions, and as many linear layers, of the recorded stack."""
CONVOLUTION, LINEAR = "7", "15"
"""The last of each."""


@pytest.fixture(scope="module")
def planner() -> MemoryPlanner:
    return MemoryPlanner(ProfileView(read_profiles(RECORDED / "stack")[0].profile))


@functools.cache
def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / "measured.json").read_text())["stack"]
    return found


def stack_of(convolutions: int, linears: int) -> PlanRequest:
    layers = {CONVOLUTION: convolutions - LAYERS, LINEAR: linears - LAYERS}
    return PlanRequest(layers=layers, memory_bytes=measured()["limit_bytes"])


def test_a_stack_eight_times_as_deep_takes_what_was_measured(planner: MemoryPlanner) -> None:
    rows = [row for row in measured()["runs"] if row["training"] and row["linears"]]
    assert [(row["convolutions"], row["linears"]) for row in rows] == [(61, 61), (54, 62)]
    for row in rows:
        found = planner.plan(stack_of(row["convolutions"], row["linears"]))
        assert found.peak_allocated.value == pytest.approx(row["peak_allocated"], rel=0.01)
        assert found.peak_reserved.value == pytest.approx(row["peak_reserved"], rel=0.01)


def test_the_most_layers_run_and_one_more_of_each_does_not(planner: MemoryPlanner) -> None:
    limit = measured()["limit_bytes"]

    def runs(count: int) -> bool:
        return runs_under(planner.changed(stack_of(count, count)), planner.recorded_settings, limit)

    def smallest_limit(count: int) -> Any:
        return planner.plan(stack_of(count, count)).smallest_limit

    assert [runs(count) for count in (104, 105)] == [True, False]
    assert smallest_limit(104).value <= limit < smallest_limit(106).value
    # With the whole interval it is less.
    assert smallest_limit(101).high <= limit < smallest_limit(102).high
