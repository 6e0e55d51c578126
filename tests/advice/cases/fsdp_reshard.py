"""Cases of `fsdp_reshard`: parameters that are gathered twice, in simulated and recorded jobs."""

from __future__ import annotations

from typing import Any

import msgspec
from advice.case import Case
from advice.recorded import recorded
from advice.simulated import LATE, posing

from tests.support.simulated_job import fsdp, simulate


def _job(settings: Any = LATE, **facts: Any) -> Any:
    return posing(lambda: simulate(4, fsdp(4, transfer_ms=3.0), seed=3), fsdp=settings, **facts)


CASES = (
    # Six gathers of 50 MB.
    Case("gathers of 3 ms", _job(), "fired", readings={"Memory to keep the parameters": 300_000_000}),
    Case("enough memory", _job(available_memory_bytes=10**9, peak_memory_allocated_bytes=10**8), "fired"),
    Case("little memory", _job(available_memory_bytes=10**9, peak_memory_allocated_bytes=8 * 10**8), "silent",
         "190.7 MiB are free at the peak"),
    Case("several passes in a step", _job(msgspec.structs.replace(LATE, units=3)), "not_applicable"),
    Case("a job of CPUs that gathers twice", recorded("ranks/settings_recorded/gloo_flat"), "fired"),
    Case("a job of CPUs that gathers once", recorded("ranks/settings_recorded/gloo_hybrid"), "silent"),
)  # fmt: skip
