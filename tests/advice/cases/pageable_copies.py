"""Cases of `pageable_copies`: batches from pageable memory, at the rate of pinned memory."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import ANY, Case, between
from advice.recordings import HTOD, copy, loop


def _batch(trace: Any, at: float) -> None:
    # 5.5 MB in 250 us: 22 GB/s, where 55 GB/s would take 100 us.
    trace.event("data.py(5): batch", "python_function", at + 28, 560)
    copy(trace, at + 30, HTOD.format("Pageable"), size=5_500_000, gpu=at + 325, dur=250, until=at + 577)


def _pinned(trace: Any, at: float) -> None:
    copy(trace, at + 30, HTOD.format("Pinned"), size=5_500_000, gpu=at + 325, dur=250, until=None)


CASES = (
    Case(
        "a batch",
        loop(_batch),
        "fired",
        readings={
            "Copies from pageable memory, per step": 250_000,
            "Bytes per step": 5_500_000,
            "Rate over that of pinned memory": pytest.approx(22 / 55),
        },
        saving_ns=(between(60_000, 200_000), ANY, between(60_000, 200_000)),
        says=["pin_memory=True", "to, in data.py:5 batch"],
    ),
    Case("a pinned batch", loop(_pinned), "silent", "No large copy"),
)
