"""Cases of `small_copies`: twenty small copies a step are many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case, between
from advice.recordings import ADD, HTOD, copy


def _copies(count: int) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        for number in range(3):
            at = 1000.0 * number
            trace.step(number, at, 1000)
            for index in range(count):
                begin = at + 22 * index
                copy(trace, begin + 10, HTOD.format("Pinned"), size=4096, gpu=begin + 25, dur=1, until=None)
            trace.op("aten::mul", at + 700, 20)
            trace.launch(ADD, at + 705, at + 710, 200)

    return events


CASES = (
    Case(
        "twenty",
        _copies(20),
        "fired",
        readings={
            "Small copies per step": 20,
            "Bytes of one, at the median": 4096,
            "CPU time for them, per step": 20 * 20_000,
        },
        # One of them is left, and the kernel's 200 us.
        saving_ns=(between(0, 380_000), between(1, 380_000), between(1, 1e6)),
        says=["Join the tensors on the CPU"],
    ),
    Case("nineteen", _copies(19), "silent", "19 small copies a step are no more than usual."),
)
