"""Cases of `dataloader_bound`: it fires from 5 % of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case


def _waiting(microseconds: float) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.step(0, 0, 1000)
        trace.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, microseconds)
        trace.op("aten::mm", 500, 100)

    return events


CASES = (
    Case("below the threshold", _waiting(49.9), "silent", "5.0 % of the step is spent waiting in the DataLoader"),
    Case(
        "at the threshold",
        _waiting(50),
        "fired",
        "0.05 ms of each 1.00 ms step",
        {"Share of the step": 5.0, "Waiting per step": 50_000, "Worker processes": None},
        (10_000, 25_000, 50_000),
    ),
)
