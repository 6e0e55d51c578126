"""Cases of `straggler`: a rank that is late in every step."""

from __future__ import annotations

from advice.case import ANY, Case, between
from advice.recordings import ranks

CASES = (
    Case(
        "a rank with more work",
        ranks({"work": 900, "own": 50}, {"work": 300, "own": 650}, unprofiled_step_ns=1_000_000),
        "fired",
        "The other ranks wait",
        saving_ns=(ANY, between(300_001, 650_000), ANY),
        says=["Rank 0 delays the others"],
    ),
    Case("equal ranks", ranks({"work": 500}, {"work": 500}), "silent"),
    Case("one rank", ranks({"work": 900, "own": 50}, unprofiled_step_ns=1_000_000), "not_applicable"),
)
