"""Cases of `slow_link`: a transport that is off."""

from __future__ import annotations

from advice.case import ANY, Case, between
from advice.recorded import recorded

CASES = (
    Case(
        "no peer access",
        recorded("ranks/recorded/ddp_slow_link"),
        "fired",
        # As timed without the profiler, 37.8 ms and 35.4 ms with peer access.
        saving_ns=(between(1, 4_000_000), ANY, between(4_000_001, 1e9)),
        says=["Data between ranks 0, 1 moves slower than the links allow"],
    ),
    Case("NVLink", recorded("ranks/recorded/ddp_even"), "silent", "GB/s"),
)
