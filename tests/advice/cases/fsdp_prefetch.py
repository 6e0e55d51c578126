"""Cases of `fsdp_prefetch`: gathers that nothing hides, in simulated jobs."""

from __future__ import annotations

from typing import Any

import msgspec
from advice.case import Case
from advice.recorded import recorded
from advice.simulated import LATE, posing

from tests.support.simulated_job import fsdp, simulate


def _job(prefetch: bool, settings: Any = LATE) -> Any:
    return posing(lambda: simulate(4, fsdp(4, prefetch=prefetch), seed=2), fsdp=settings)


CASES = (
    Case("without prefetch", _job(False), "fired"),
    Case("prefetch is on", _job(True, msgspec.structs.replace(LATE, forward_prefetch=True)), "silent"),
    Case("gathers are hidden without it", _job(True), "silent"),
    Case("a job of CPUs", recorded("ranks/settings_recorded/gloo_flat"), "silent"),
)
