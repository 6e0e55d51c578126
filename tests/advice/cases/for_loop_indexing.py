"""Cases of `for_loop_indexing`: loops over the rows of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case, between
from advice.recordings import ADD, STEPS, launches


def _turns(turns: int) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        for step in range(STEPS):
            at = 10_000 * step
            clock = at + 0.0
            for _ in range(turns):
                trace.op("aten::select", clock, 10, dims=[[64, 512], [], []])
                trace.op("aten::mul", clock + 15, 30, dims=[[512], []])
                trace.launch(ADD, clock + 20, clock + 30, 2)
                trace.op("aten::copy_", clock + 50, 30, dims=[[512], [512], []])
                trace.launch(ADD, clock + 60, clock + 70, 2)
                clock += 100
            trace.op("aten::mm", clock, 20)
            trace.launch(ADD, clock + 10, clock + 20, 1000)
            trace.step(step, at, clock + 1100 - at)
            trace.runtime(clock + 30, 1000, name="cudaStreamSynchronize")

    return events


CASES = (
    Case(
        "40 turns",
        _turns(40),
        "fired",
        "select, mul, copy_",
        {"Turns of the longest loop": 40, "Launches in them per step": 80},
        (between(0, 4e6), between(1, 4e6), between(2_106_000, 4_374_000)),
    ),
    Case("15 turns", _turns(15), "silent"),
    Case("no indexing op", launches((60, 50, 5, {})), "silent"),
)
