"""FLOPs and bytes that follow from shapes that cannot be are unknown, and no sum overflows."""

from __future__ import annotations

from typing import Any

import pytest

from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls

LARGE = 2**31 - 1


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([[LARGE, LARGE], [LARGE, LARGE]], UNKNOWN),
        ([[2**20, 2**17], [2**17, 2**20]], UNKNOWN),
        ([[2**16, 2**16], [2**16, 2**16]], 2**49),
    ],
)
def test_more_flops_than_a_call_can_have_are_unknown(new_trace: Any, shapes: list[list[int]], expected: int) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for number in range(3):
        trace.op("aten::mm", 10 + 100 * number, 20, dims=shapes, types=["float", "float"])
    view = trace.view()
    assert matrix_calls(view, view.selection()).flops.tolist() == [expected] * 3


def test_the_flops_of_very_many_calls_fit_into_a_number(new_trace: Any) -> None:
    trace = new_trace()
    trace.step(0, 0, 100_000)
    for number in range(3000):
        trace.op("aten::mm", 10 + 30 * number, 20, dims=[[2**17, 2**17], [2**17, 2**17]], types=["float", "float"])
    view = trace.view()
    found = matrix_calls(view, view.selection()).flops
    assert set(found.tolist()) == {UNKNOWN}
