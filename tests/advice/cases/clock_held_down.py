"""Cases of `clock_held_down`: readings of the clock and of what limits it."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import Case
from advice.recorded import recorded
from advice.recordings import nothing

from tb_dlprof_plugin.model.run_facts import ClockLimit, GpuEnergy


def _limited(clock: int, **limits: int) -> Any:
    """Ten readings, and in how many of them the clock was limited by what."""
    reasons = [ClockLimit(name.replace("_", " "), number) for name, number in limits.items()]
    energy = GpuEnergy(0, 1_400_000, 2_000_000_000, 10, 700_000, clock, 60, reasons)
    return recorded("energy/recorded/mlp/fp32", energy=[energy], max_sm_clock_mhz=1980)


CASES = (
    Case("no limit", _limited(1980), "silent", "Nothing held the clock down"),
    Case("in few readings", _limited(1900, power_cap=2), "silent", "Nothing held the clock down"),
    Case("by little", _limited(1960, power_cap=10), "silent", "by 1 % only"),
    *(
        Case(
            f"by {', '.join(limits)}",
            _limited(clock, **limits),
            "fired",
            seen,
            {"Clock below the maximum": pytest.approx(100 * (1 - clock / 1980))},
            severity=severity,
        )
        for clock, limits, seen, severity in (
            (1683, {"power_cap": 10}, "In 100 % of the readings", "low"),
            (1200, {"thermal_slowdown": 8, "power_cap": 3}, "the reason thermal slowdown", "medium"),
        )
    ),
    Case("no readings", nothing, "not_applicable", training={}),
)
