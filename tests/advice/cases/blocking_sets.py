"""Cases of `blocking_sets`: sets of pinned memory wait, those of the GPU's do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case, between
from advice.recordings import loop


def _sets(name: str) -> Callable[[Any, float], None]:
    def each(trace: Any, at: float) -> None:
        trace.runtime(at + 50, 275, 77_000 + int(at), name="cudaMemset")
        trace.kernel(name, at + 321, 2, 77_000 + int(at), cat="gpu_memset", bytes=4096)

    return each


CASES = (
    Case(
        "pinned memory",
        loop(_sets("Memset (Pinned)")),
        "fired",
        readings={"Sets that wait, per step": 1},
        saving_ns=(between(0, 3e5), between(150_000, 300_000), between(150_000, 5e5)),
    ),
    Case("memory of the GPU", loop(_sets("Memset (Device)")), "silent", "No set"),
)
