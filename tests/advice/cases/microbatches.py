"""Cases of `microbatches`: pipelines of two GPUs, recorded with different numbers of microbatches."""

from __future__ import annotations

from advice.case import Case
from advice.recorded import recorded
from advice.recordings import nothing

CASES = (
    Case("eight", recorded("ranks/settings_recorded/gpipe"), "fired"),
    Case("two", recorded("ranks/settings_recorded/gpipe_few"), "silent"),
    Case("one rank", nothing, "not_applicable", training={}),
)
