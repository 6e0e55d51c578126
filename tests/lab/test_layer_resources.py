"""The planner on a stack of layers, from a recording of a small one."""

from __future__ import annotations

import pytest
from support.recorded_runs import ROOT

from lab.layer_resources.compare import Stack


def test_a_stack_eight_times_as_deep_takes_what_was_measured() -> None:
    stack = Stack(ROOT / "tests" / "data" / "layer_resources")
    rows = stack.trainings()
    assert [(row["convolutions"], row["linears"]) for row, _ in rows] == [(61, 61), (54, 62)]
    for row, found in rows:
        assert found.peak_allocated.value == pytest.approx(row["peak_allocated"], rel=0.01)
        assert found.peak_reserved.value == pytest.approx(row["peak_reserved"], rel=0.01)


def test_the_most_layers_run_and_one_more_of_each_does_not() -> None:
    stack = Stack(ROOT / "tests" / "data" / "layer_resources")
    most = stack.most(whole_interval=False)
    limit = stack.measured["limit_bytes"]
    peaks = [stack.planner.plan(stack.request(n, n), largest=False).smallest_limit.value for n in (most, most + 2)]
    assert peaks[0] <= limit < peaks[1]
    assert stack.most(whole_interval=True) < most
