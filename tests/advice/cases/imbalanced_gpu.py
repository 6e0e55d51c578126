"""Cases of `imbalanced_gpu`: ranks with different work."""

from __future__ import annotations

from advice.case import ANY, Case
from advice.recordings import nothing, ranks

CASES = (
    Case(
        "a third of the work",
        ranks({"work": 900, "own": 50}, {"work": 300, "own": 650}, unprofiled_step_ns=1_000_000),
        "fired",
        "rank 0 0.00 ms, rank 1 0.60 ms a step",
        # A third of the step goes with even shares of 600 us, at the least 0.6 of that.
        saving_ns=(200_000, 333_333, ANY),
        says=["rank 1 has 33 % of the work of rank 0 and waits for it", "linear, more on rank 0 than on rank 1"],
    ),
    Case("nearly equal ranks", ranks({"work": 500}, {"work": 410}), "silent"),
    Case("one rank", ranks({"work": 500}), "not_applicable"),
    Case("one GPU", nothing, "not_applicable", training={}),
)
