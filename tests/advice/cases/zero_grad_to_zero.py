"""Cases of `zero_grad_to_zero`: gradients that are filled with zeros and added to."""

from __future__ import annotations

import pytest
from advice.case import Case, between
from advice.recordings import zeroing

_SAVED = pytest.approx(600_000, rel=0.1)

CASES = (
    Case(
        "filling and adding",
        zeroing(),
        "fired",
        readings={"Filling per step": 300_000, "Adding per step": 300_000},
        # Half of the adding is certain, less the 2 % of the step by which steps of one run vary.
        saving_ns=(between(350_000, 450_000), _SAVED, between(540_000, 700_000)),
        says=["set_to_none=True"],
    ),
    Case(
        "of several backward passes one adds to nothing",
        zeroing(passes=3),
        "fired",
        readings={"Adding per step": 900_000},
        saving_ns=(between(0, 660_000), _SAVED, between(540_000, 2_000_000)),
    ),
    Case("gradients are accumulated", zeroing(passes=3, zeroed=False), "silent", "No kernel fills"),
    Case("gradients are not used", zeroing(added=False), "silent", "no kernel adds to them"),
)
