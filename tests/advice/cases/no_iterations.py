"""Cases of `no_iterations`: a recording whose steps were not marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case
from advice.recordings import steps


def _batches(batches: int, step_mark: bool = True) -> Callable[[Any], None]:
    """A block that scores batches."""

    def events(trace: Any) -> None:
        if step_mark:
            trace.step(0, 0, 100 * batches + 20)
        trace.op("aten::zeros", 1, 2)
        for index in range(batches):
            at = 10 + 100 * index
            trace.module("", at, 80)
            trace.op("aten::linear", at + 5, 20)
            trace.op("aten::relu", at + 30, 20)
            trace.op("aten::argmax", at + 85, 5)

    return events


def _accumulation(trace: Any) -> None:
    trace.step(0, 0, 700)
    for index in range(6):
        trace.module("", 100 * index, 80)
        trace.op("aten::linear", 100 * index + 5, 20)
    trace.optimizer(610, 50)


def _optimizer_steps(trace: Any) -> None:
    for index in range(4):
        trace.op("aten::linear", 100 * index, 20)
        trace.optimizer(100 * index + 40, 20)


CASES = (
    *(
        Case(
            f"a block that never steps, marked: {mark}",
            _batches(6, mark),
            "fired",
            readings={"Time from one to the next": 100_000},
            says=["No iterations were found; the model repeats 6 times"],
        )
        for mark in (True, False)
    ),
    Case("two batches in a step", _batches(2), "silent"),
    Case("one step", steps(100), "silent"),
    Case("gradients are accumulated", _accumulation, "silent"),
    Case("optimizer steps", _optimizer_steps, "silent", "4 iterations were found by the optimizer's steps."),
)
