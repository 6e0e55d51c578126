"""Cases of `gradient_bucket_copies`: jobs of two GPUs, recorded with gradients in the buckets and with them."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded
from advice.recordings import nothing

CASES = (
    Case("gradients are copied", recorded("ranks/settings_recorded/wide_copied"), "fired"),
    Case("gradients are views", recorded("ranks/settings_recorded/wide"), "silent"),
    Case("one rank", nothing, "silent", training={}),
)
