"""Cases of `slow_copies`: copies below the rate of the link."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import Case
from advice.recordings import DTOH, copy, loop


def _result(trace: Any, at: float) -> None:
    copy(trace, at + 30, DTOH.format("Pageable"), size=2_200_000, gpu=at + 325, dur=250, until=at + 577)


def _of_an_unknown_gpu(trace: Any) -> None:
    trace.step(0, 0, 3000)
    copy(trace, 100, DTOH.format("Pageable"), size=2**21, gpu=110, dur=2000, until=2200)


CASES = (
    Case(
        "results in pageable memory",
        loop(_result),
        "fired",
        "from the GPU, pageable memory",
        {"Rate over the link's": pytest.approx(8.8 / 55)},
        says=["pinned buffer"],
    ),
    Case(
        "the link's rate is unknown",
        _of_an_unknown_gpu,
        "not_applicable",
        "What the link of this GPU carries is not known.",
    ),
    Case("no copy", loop(lambda trace, at: None), "silent"),
)
