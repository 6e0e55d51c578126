"""Cases of `allocation_in_steps`: calls that allocate, and the GPU's idle time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.case import ANY, Case
from advice.recordings import ADD, STEPS


def _allocating(steps_with: int) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        for step in range(STEPS):
            at = 10_000 * step
            trace.step(step, at, 10_000)
            if step < steps_with:
                trace.op("aten::empty", at, 2100)
                trace.runtime(at + 50, 1000, name="cudaMalloc")
                trace.runtime(at + 1060, 1000, name="cudaMalloc")
                trace.runtime(at + 8000, 1500, name="cudaFree")
            trace.op("aten::mm", at + 2200, 20)
            trace.launch(ADD, at + 2210, at + 2220, 5700)

    return events


CASES = (
    Case(
        "in each step",
        _allocating(STEPS),
        "fired",
        readings={
            "Calls that allocate, per step": 2,
            "Calls that free, per step": 1,
            "Time in them per step": 3_500_000,
        },
        # 70 % of that is certain, all of the 4.3 ms in which the GPU idles possible.
        saving_ns=(pytest.approx(0.7 * 3_420_000, rel=0.1), ANY, pytest.approx(4_300_000, rel=0.05)),
        says=["empty_cache"],
    ),
    Case("in one step", _allocating(1), "silent", "in 1 of 4 steps"),
)
