"""Cases of `out_of_memory_ahead`: a process that takes nearly all of the GPU's memory."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import filling
from advice.recordings import nothing

_RUN = "memory_plan/recorded/perceptron/base"

CASES = (
    Case(
        "97 %",
        filling(_RUN, 1 / 1.03),
        "fired",
        "(97 %)",
        says=["Take batches of 7,372 instead of 8,192", "By a replay of the allocator"],
    ),
    Case("91 %, and allocations failed", filling(_RUN, 1 / 1.1, allocator_retries=2), "fired",
         "2 allocations of the process failed"),
    Case("91 %", filling(_RUN, 1 / 1.1), "silent", "(91 %)"),
    Case("half", filling(_RUN, 0.5), "silent", "(50 %)"),
    Case("half, and allocations failed", filling(_RUN, 0.5, allocator_retries=2), "silent", "(50 %)"),
    Case("the GPU's memory is unknown", nothing, "not_applicable", training={}),
)  # fmt: skip
