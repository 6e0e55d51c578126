"""Cases of `fsdp_units`: jobs of two GPUs, recorded with units of different sizes."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded
from advice.recordings import nothing

CASES = (
    Case("tiny units", recorded("ranks/settings_recorded/sharded_tiny_units"), "fired"),
    Case("units of a layer", recorded("ranks/settings_recorded/sharded"), "silent"),
    Case("one rank", nothing, "not_applicable", training={}),
)
