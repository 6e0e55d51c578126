"""Cases of `copies_not_overlapped`: copies while no kernel runs."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import HTOD, loop


def _alone(trace: Any, at: float) -> None:
    trace.op("aten::to", at + 1, 3)
    corr = 50_000 + int(at)
    trace.runtime(at + 2, 1, corr, name="cudaMemcpyAsync")
    trace.kernel(HTOD.format("Pinned"), at + 740, 200, corr, cat="gpu_memcpy", bytes=11_000_000)


CASES = (
    Case(
        "a copy after the kernels",
        loop(_alone, waits=False),
        "fired",
        readings={"Of them while no kernel runs": 200_000},
        saving_ns=(between(0, 200_000), between(1, 200_000), between(1, 200_000)),
    ),
    Case("no copy", loop(lambda trace, at: None, waits=False), "silent"),
)
