"""Cases of `kernel_concurrency`: branches of a model, and streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.case import ANY, Case
from advice.recordings import ADD, STEPS, filled

_DIMS = [[8, 4096], [16, 4096]]


def _branches(op: str = "aten::linear", dims: Any = _DIMS, between: bool = False) -> Callable[[Any], None]:
    """Four heads of a kernel each, with an op between them."""

    def events(trace: Any) -> None:
        trace.gpu()
        for step in range(STEPS):
            at = 10_000 * step
            trace.step(step, at, 9000)
            trace.module("", at, 200)
            for number in range(4):
                begin = at + 40 * number + 1
                trace.module(f"heads.{number}", begin, 18)
                trace.op(op, begin + 1, 16, dims=dims, types=["float", "float"])
                trace.launch(ADD, begin + 3, at + 200 + 2000 * number, 1999, grid=[8, 1, 1], block=[256, 1, 1])
                if between:
                    trace.op("aten::mul", begin + 20, 10)
                    trace.launch(ADD, begin + 22, at + 2199 + 2000 * number, 1, grid=[8, 1, 1], block=[256, 1, 1])
            trace.runtime(at + 210, 8000, name="cudaStreamSynchronize")

    return events


def _streams(beside: bool) -> Callable[[Any], None]:
    return filled(*[("aten::mm", 8, 1000, {}), ("aten::mm", 8, 1000, {"stream": 9, "beside": beside})] * 2)


def _events_between_streams(trace: Any) -> None:
    trace.gpu()
    for step in range(STEPS):
        at = 5000.0 * step
        trace.step(step, at, 5000)
        for number in range(4):
            begin = at + 20 * number
            trace.op("aten::mm", begin, 18)
            trace.runtime(begin + 1, 1, name="cudaStreamWaitEvent")
            trace.launch(ADD, begin + 3, at + 100 + 1000 * number, 1000, stream=7 + number % 2, grid=[8, 1, 1])
        trace.runtime(at + 110, 4000, name="cudaStreamSynchronize")


CASES = (
    Case(
        "branches that cannot feed each other",
        _branches(),
        "fired",
        "heads.0, heads.1, heads.2 and 1 more",
        {"How many fit side by side": 4},
        (ANY, pytest.approx(8_000_000 * (1 - 1.2 / 4), rel=0.05), ANY),
    ),
    Case("one returns what the next could take", _branches(dims=[[8, 16], [16, 16]]), "silent", "cannot be shown"),
    Case("the shape of the result is unknown", _branches(op="aten::cumsum"), "silent", "cannot be shown"),
    Case("an op between", _branches(between=True), "silent", "cannot be shown"),
    Case("streams that never overlap", _streams(beside=False), "fired"),
    Case("streams that overlap", _streams(beside=True), "silent"),
    Case("streams that wait for each other", _events_between_streams, "silent", "wait for each other by events"),
)
