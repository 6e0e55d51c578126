"""Cases of `gradient_buckets`: jobs of two GPUs, recorded with buckets of different sizes."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded
from advice.recordings import nothing

CASES = (
    Case("one bucket", recorded("ranks/settings_recorded/wide_one"), "fired"),
    Case("buckets of 25 MB", recorded("ranks/settings_recorded/wide"), "silent"),
    Case("one rank", nothing, "not_applicable", training={}),
)
