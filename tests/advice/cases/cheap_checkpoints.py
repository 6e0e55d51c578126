"""Cases of `cheap_checkpoints`: few checkpoints that free much."""

from __future__ import annotations

import pytest
from advice.case import Case
from advice.recorded import filling, recorded

_WAVE = "memory_plan/inputs_and_splits_recorded/wave/base"

CASES = (
    Case(
        "a full GPU",
        filling(_WAVE, 0.9),
        "fired",
        readings={"Lower peak": pytest.approx(20.5, abs=0.1), "Memory taken at the peak": pytest.approx(90)},
        says=[
            "Checkpoints would free 375.0 MiB for 7.2 % of the step",
            "checkpoint(self.blocks[3], x, use_reentrant=False)",
        ],
    ),
    # What a perceptron keeps, the next layer needs anyway.
    Case("nothing to free", filling("memory_plan/recorded/perceptron/base", 0.9), "silent", "no set of checkpoints"),
    Case("room on the GPU", recorded(_WAVE), "silent", "% of the memory."),
)
