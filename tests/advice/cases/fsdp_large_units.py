"""Cases of `fsdp_large_units`: jobs of CPUs, recorded with units of different sizes."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded

CASES = (
    Case(
        "one unit",
        recorded("ranks/settings_recorded/gloo_one_unit"),
        "fired",
        says=["One unit of FSDP has 100 % of the parameters: nothing hides its exchange"],
    ),
    Case("two units", recorded("ranks/settings_recorded/gloo_units"), "silent", "50 % of the parameters"),
)
